"""Regular expressions with bounded cost: a subset that Java and Python match alike.

`parse` reads a pattern into the tree of `nodes`; `automaton` lists its states and moves; `cost` bounds
what a backtracking engine could try for each character; `group_loops` keeps Java's stack bounded;
`pattern` accepts or refuses and renders the text for either engine.
Entry points: `pattern.canonical` (Java, for Spark) and `pattern.compiled` (Python).
"""
