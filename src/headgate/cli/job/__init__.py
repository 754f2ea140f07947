"""`headgate job`: run, start, stop, show and repair jobs of every kind.

`group` is the noun with its verbs, and has `repair` and `accept-gap`; `run` starts and stops runs and waits for
them, `show` lists runs and reports lag. What a kind of job needs beyond that comes from its `JobKind`.
"""
