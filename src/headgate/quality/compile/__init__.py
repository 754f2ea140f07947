"""Compiles a rule table to Spark SQL. Pure: the same rule set gives the same bytes.

First the rule set is resolved: `columns` and `typed_rules` turn every rule into one condition, `resolve`
collects the faults and gives a `JudgedTable`. Then SQL in the order of the data: `source` (records to rows),
`unique` (repeated keys), `results` (verdict, result and dead letter of each row), `windows` (metrics,
partials, aggregates), `file` (the two SQL files and the permanent views). `tables` holds all names and DDL.
"""
