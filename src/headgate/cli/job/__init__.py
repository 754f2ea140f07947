"""`headgate job`: run, start, stop, show and repair jobs.

`group` is the noun with its verbs; `run` starts and stops runs, `show` lists them and reports lag.
"""
