"""The engine: the process that carries out jobs, and the protocol that every batch goes through.

Asking: `job_kind` describes the kinds of jobs, `run_options` what runs that read Kafka are asked for, `submit`
writes a wanted run into the ops store.
Hosting: `lease` makes one engine the active one, `session` starts Spark by `spark_options`, `host` puts
lease, session, telemetry and `controller` together; the controller starts a thread for each run, which is
given a context of `run`.
A run that follows topics: `topic_run` opens the `checkpoint` and a query of `stream`; each
micro-batch goes through `batch` (intent, write, outcome) with the steps of `staging`. Beside that:
`recovery` of lost checkpoints and ledger rows, `job_status` and `lag` for people, `telemetry` for
metrics, `connect` for clients of a running engine, `training` for the class archive of its JVM.
Entry points: `host.serve`, `submit.ask_for`, `batch.BatchProtocol`.
"""
