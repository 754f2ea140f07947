"""The router: one job for each source topic sends every event to the topics of all filters that match it.

plan (pure: which filters judge from the next batch on, who is owed a replay) → sets (compiled filters, output
topics) → views (SQL views over a batch) → batch (judge, send, dead letters, isolate failing filters) → job (runs
batches, changes the set between two of them); replay judges what a filter missed, as a job of its own.
"""
