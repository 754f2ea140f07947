"""The reference evaluator: a condition in Python, with exactly the result that Spark gives.

It runs rules on a handful of rows without Spark, and the compiled SQL is tested against it.
`values` holds numbers, dates and times as Spark does; `casts` reads texts and changes types;
`json_documents` reads JSON; `functions` has one Python function for each of the language;
`evaluate` turns a tree into a function of one row. Entry points: `evaluate.evaluate`, and
`evaluate.build_evaluator` for many rows.
"""
