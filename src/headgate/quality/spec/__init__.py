"""The declaration of a rule set: its model, its loader and everything that must hold of it.

`values` and `rule_set` are the model, `source_checks` and `rule_checks` the rules between its parts,
`legacy_formats` upgrades the two older formats, `loader` reads a file and collects all faults at once,
`rule_tests` is the declaration of tests.
Conditions are not parsed here: that is `quality.compile.resolve`.
"""
