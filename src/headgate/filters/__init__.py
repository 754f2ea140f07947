"""Filters: which events of a source topic go to which consumer's topic, decided by two people, routed by one job.

Walk of a document: spec, document_text, validation, loader (JSON with every fault and its line) → compile/
(condition, Spark SQL, Flink SQL) → control/ (submit, approve, deploy; status and audit in store/) → targets/
(the engine's router, or Confluent) and git/ (one commit for each accepted version).
Walk of a record: events/ (PostgreSQL, Debezium) → router/ (one job for each source topic, replay beside it)
→ output topics and dead letters → consumers/.
`preview` tries a document on the last events, `explain` puts it into words, `accounting` proves from the
ledger that every offset was judged once. Entry points: `router.job.run_router`, `router.replay.run_replay`
(job kinds), `control.service.FilterService` (the API), `control.reconciler.Reconciler`, the commands in cli/.
"""
