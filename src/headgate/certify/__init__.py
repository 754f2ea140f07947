"""Certify: proves that every record is accounted for, and validates a running pipeline in four stages.

Walk of a certificate: `evidence` gathers ledger, tables and topic of a dataset, `account` checks that they add
up, `certificate` joins the accounts of all datasets, rule tables, pairs and routers into one file. Walk of a
validation: `stages` judges services, jobs, data and marts, `validation` gathers what they need. `cli` has
`headgate certify` and `headgate validate`.
The accounts of other capabilities come through the list in `headgate.app`.
"""
