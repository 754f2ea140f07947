"""Data quality: rules over the rows of one source, declared in `rules/*.yml`.

A topic is judged batch by batch, a table of the lake by its newest snapshot. The files follow the walk of a
rule: `spec` reads the declaration, `compile` resolves it to conditions and renders it as SQL, `revision` keeps
both as one immutable revision, `deploy` makes it the wanted one, `job` judges rows by it on Spark,
`accounting` proves that no row is missing, `report` shows what was found, `cli` holds `headgate rules`.

Beside that walk: `evaluator` judges a row without Spark and runs declared tests, `diff` compares two revisions,
`explain` puts rules into words, `suggest` proposes rules from a Parquet file,
`notebook` writes notebooks, `record_parser` reads single records as the job does.
Two sources joined by key are declared and compiled here too; what is special to them `headgate.reconcile`
brings behind the interface of `pairs`. Entry points: `cli` (the noun `rules`), `job.run.run_quality`, `revision.declared_rules`.
"""
