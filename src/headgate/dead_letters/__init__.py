"""Dead letters of all jobs: browse them, group them, send them to their topics again; never delete one.

Walk: table (values, read from Iceberg by DuckDB) → masking (as a person may see them) → redrive (plan,
journal, run) → service (the Kafka side, and what commands and API share) → api, cli.
Entry point: `service.open_redriving`. Jobs write dead letters through core/lake and core/engine.
"""
