"""Build and test the dbt marts over the current versions of the silver tables.

Walk: run (starts dbt, reports) → child (the process); both read dbt's files by models.
"""
