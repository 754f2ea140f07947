"""`headgate demo filters` and `headgate feed events`: routes events to three dealers and proves where each went.

`events` draws and sends them, `feed` is the command that does; `stage` are API, people and consumers on running
services, `proof` compares ledger, topics and consumers, `cli` is the demo.
"""
