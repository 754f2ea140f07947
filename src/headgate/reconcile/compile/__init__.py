"""The SQL of a reconciled pair: `states` goes from the messages of both topics to the merged state of each key, `file`
from states to verdicts and to all statements in their order, `views` to what stays over the tables of the job.
"""
