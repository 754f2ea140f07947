"""Iceberg tables: written by jobs through Spark, read by everything else through DuckDB.

Writing: `spark` runs SQL and calls into the JVM; `commits` holds the metadata that each commit carries
and what a refused commit means; `table` stages a batch, publishes it by snapshot id and says how
far a job's table has come; `table_use` names a table and the jobs that still need
something of it, for maintenance. Reading without Spark: `catalog` finds a table's current metadata,
`duckdb_reader` queries it. The dead-letter table and its sender stand here too, because every
job writes to it.
Entry points: `table.ManagedTable`, `table.Staging`, `duckdb_reader.Lake.open`.
"""
