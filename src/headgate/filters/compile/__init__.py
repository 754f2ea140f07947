"""Compiles a filter's document; pure: same document, same bytes.

conditions (syntax tree) → spark_sql (event columns, the filter's own statements) → routing (all filters of a
topic in one script); flink for Confluent; matcher judges in Python what the script judges in Spark.
"""
