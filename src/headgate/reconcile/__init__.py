"""Reconciliation: the rows of two sides compared key by key, as a stream, as a batch, or as two tables.

A key's verdict is a pure function of its merged state (`state`) and of the time, by the decision table
(`decisions.yml`, `decision_table`). The walk of the data:
`hasher/` reads what the cloud has of a key and writes it to the cloud's topic;
`compile/` makes the SQL from messages to states to verdicts;
`job/` runs it batch by batch, sweeps keys that wait, and publishes changes and status counts;
`results`, `key_history` and `row_diff` read what was found, `report/` shows it, `accounting` checks that it adds up;
`repair/` sends again what the cloud lacks or has wrong; `table_compare/` compares two tables without a stream.
Entry points: `job/job.py` for the engine, `rule_tables.py` for quality (by `headgate.app`), `cli/` for people.
What is declared stands with the rule set: `quality/spec/reconcile_section.py`.
"""
