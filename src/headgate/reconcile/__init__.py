"""Reconciliation: the rows of two sides compared key by key, as a stream, as a batch, or as two tables.

A key's verdict is a pure function of its merged state (`state`) and the time, by the decision table
(`decisions.yml`, read by `decision_table`). Walk: `hasher` (writes what the cloud has of a key to the cloud's
topic) → `compile` (SQL from messages to states to verdicts) → `job` (batches, sweeps, publishers) → `results`,
`key_history`, `row_diff` (read what was found) → `report`, `accounting` → `repair` (sends rows again).
Beside it: `table_compare` compares two tables without a stream, `cassandra` is the cloud side's database,
`rows` reads whole rows of both sides. The declaration stands with the rule set: `quality/spec/reconcile_section.py`.
Entry points: `job.job.run_reconcile`, `rule_tables.PAIRS` for quality, and `headgate reconcile` in `cli`.
"""
