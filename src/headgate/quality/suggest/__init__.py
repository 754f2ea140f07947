"""Proposes rules from the values of a Parquet file, for `headgate rules suggest`.

`survey` profiles the file and measures each proposal on its rows, `proposals` decides which rules the figures
suggest, `rule_set` writes them as a rule set that is valid as it stands.
"""
