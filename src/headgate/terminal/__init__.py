"""Toolkit for the commands of every capability; it knows none of them.

`lazy_group` loads a noun or verb when it is called, so that `headgate --help` imports nothing heavy;
`console` renders results (text, JSON, YAML, Markdown), progress and questions: data on stdout, everything else on stderr;
`steps` runs and shows the steps of a long command, with one log file a step;
`runs` renders one run of a job and watches that an engine carries it out.
"""
