"""Compares two revisions of a rule table, for `headgate rules diff`.

`revisions` finds what a person names, `rows` reads the last rows without Spark and masks them, `changes`
compares the rules and the verdicts on those rows.
"""
