"""Data quality: rules over the rows of one source, declared in `rules.yaml` and `rules/*.yml`.

A topic is judged batch by batch, a table of the lake by its newest snapshot. Walk of a rule: `spec` (declaration)
→ `compile` (conditions, then SQL) → `revision` (both as one immutable value) → `deploy` → `job` (judges rows on
Spark) → `report`; `accounting` proves that no row is missing, `cli` holds `headgate rules`.
Beside the walk: `evaluator` judges rows without Spark and runs declared tests, `diff` compares two revisions,
`explain` describes rules in words, `suggest` proposes rules from a Parquet file, `notebook` writes notebooks,
`record_parser` reads single records as the job does. Tables with two sources are declared and compiled here too;
`headgate.reconcile` brings what is special to them, behind the interface of `pairs`.
Entry points: `job.run.run_quality`, `revision.declared_rules`, `compile.resolve.judged_table`.
"""
