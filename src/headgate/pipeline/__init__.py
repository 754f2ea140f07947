"""Datasets: a manifest declares a topic, its columns, keys and quality filters; we make bronze and silver.

Walk: spec (the manifest) → loader (every fault with its line) → compile/ (SQL templates) → scaffold
(write them into the project, merge edits) → revision (what a job runs, kept in the ops store) →
bronze → silver, backfill → dbt/ (marts). generator/ makes sample data and sends Parquet files;
columns and drift keep tables and declaration together. accounting answers what certify, validation and
maintenance ask of a dataset.
Entry points: `bronze.run_bronze`, `silver.run_silver`, `backfill.run_backfill` (job kinds),
`revision.declared_revision`, `compile.dataset.compile_dataset`, and the commands in cli/.
"""
