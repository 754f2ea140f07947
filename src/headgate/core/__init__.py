"""What every capability stands on; nothing in here knows a capability.

The parts, each using only those before it: `runtime` (Java, jars, journals of long commands), `sql`
(pieces and files of generated Spark SQL), `ledger` (the ops store: runs, intents, outcomes),
`kafka` (topics, offsets, records, schema registry, Connect), `lake` (Iceberg tables, written by
Spark and read by DuckDB), `identity` (roles, keys, masking), `metrics` (names, windows, sinks),
`profiler` (what rows look like), `engine` (the process that carries out jobs), `accounting`
(evidence and check results).
The walk of a batch: `engine.submit` writes a run into the ledger, `engine.controller` starts it,
`engine.stream` reads `kafka`, `engine.batch` takes each range from intent over `lake` to the
`ledger`. What a kind of job brings along is an `engine.job_kind.JobKind`, listed in `headgate.app`.
"""
