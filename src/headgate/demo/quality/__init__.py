"""`headgate demo quality` and `headgate feed rules`: plants defects in rows of rule tables and finds each again.

`declaration` reads `rules/feed/<table>.yml`, `rows` makes rows and messages, `planting` plants defects and counts
what must come of them, `feed` sends them; `counts` collects what every place counted, `comparison` compares.
"""
