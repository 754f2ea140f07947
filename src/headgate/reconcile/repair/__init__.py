"""Repairs: sends rows again that the cloud lacks or has wrong, never over newer data.

Walk: `table_repairs` (verdicts, rows of both sides and the target of one rule table) → `plan` (which keys, and
how; pure) → `run` (carries the plan out, with a journal on disk) → `targets` (a topic, or Cassandra itself).
`automatic` repeats this in rounds. Entry points: `table_repairs.open_repairs`, `run.run_repair`.
"""
