"""The SQL of a reconciled pair: `states` goes from the messages of both topics to the merged state of each key, and

`file` from states to verdicts and to all statements in their order, as the compiler of rule sets asks for them.
"""
