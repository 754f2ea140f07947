"""`headgate demo reconcile` and `headgate feed pairs`: plants keys with every kind of defect on both sides.

`keys` are rows and messages of a key, `roles` what can be wrong with one, `planting` the whole plant by seed, the
files that say what must come of it, and the sending of a wave; `feed` is the command that sends one. `recount`
judges the topics again in plain Python, `comparison` compares keys and sums in every place, `steps` and `cli` are
the demo.
"""
