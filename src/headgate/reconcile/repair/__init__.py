"""Repairs: sends again what the cloud lacks or has wrong.

`table_repairs` puts a repair of one rule table together; `plan` says which keys and how, `run` carries a plan out
with a journal on disk, `targets` write to a topic or to Cassandra, `automatic` repeats it in rounds.
"""
