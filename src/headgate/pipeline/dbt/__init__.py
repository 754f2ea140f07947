"""Builds and tests the dbt marts over the current versions of the silver tables.

Walk: `run` (starts dbt in a process of its own and reports) → `child` (that process); both read dbt's JSON files
by `models`. Entry points: `run.build`, `run.test`, `run.docs`.
"""
