"""The row hash: one contract, the same digits in Python, Spark SQL and Java."""
