"""Two tables compared without a stream, row by row or sum by sum.

`plan` decides columns, tolerances and forms; `sides`, `keyed` and `multisets` are the SQL; `run` carries it out in
one pass on Spark, `sums_run` over two engines, sums first; `results` holds what was found, and writes it as text.
"""
