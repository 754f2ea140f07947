"""The SQL of a reconciled pair, from messages to verdicts. Pure: the same rule set gives the same bytes.

`states` goes from the messages of both topics to the merged state of each key and defines the tables that keep
it; `file` goes from states to verdicts and puts all statements in order, as `quality.compile.file` asks for them;
`views` are the permanent views over the tables of the job. Entry point: `file.reconcile_sections`.
"""
