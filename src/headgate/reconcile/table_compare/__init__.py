"""Compares two tables without a stream, row by row or by sums of segments.

Walk: `plan` (columns, common forms, tolerances; all faults at once) → `sides`, `keyed`, `multisets` (the SQL) →
`run` (one pass on Spark) or `sums_run` (two engines, sums first, then rows that differ) → `results` (what was
found, as text). Entry points: `plan.plan`, `run.Comparison`, `sums_run.SumsComparison`.
"""
