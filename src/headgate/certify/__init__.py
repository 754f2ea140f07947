"""Certify: proves that every record is accounted for, and validates a running pipeline in four stages.

`evidence` gathers ledger, tables and topic of a dataset, `account` checks that they add up, `certificate` joins
the accounts of all datasets, rule tables, pairs and routers into one file; `stages` judges services, jobs,
data and marts, `validation` gathers what they need; `cli` has `headgate certify` and `headgate validate`.
Other capabilities' accounts come through the list in `headgate.app`.
"""
