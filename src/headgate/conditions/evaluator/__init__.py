"""The condition language in Python: what a tree gives on a row, exactly as Spark gives it.

It runs rules on a handful of rows without Spark, and it is what the compiled SQL is held against.
"""
