"""Generated Spark SQL: pieces of text, and whole files that a person reads and a job runs.

A compiler writes expressions with `fragments` and lays out the statements of a file with `script`,
which also fills in `${VAR}` (`Template`) and cuts the file into the steps that a job runs.
Text in, text out: no session, no clock, the same input gives the same bytes.
Entry points: `fragments` for a compiler, `script.parse_script` for a job.
"""
