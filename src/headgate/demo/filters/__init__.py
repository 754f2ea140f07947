"""`headgate demo filters` and `headgate feed events`: routes events to three dealers and proves where each went.

`events` draws events and sends them, `feed` is the command that does so; `stage` brings up the API, people with
keys and consumers on running services, `proof` compares ledger, topics and consumers, `cli` is the demo.
"""
