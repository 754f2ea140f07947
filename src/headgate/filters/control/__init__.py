"""The control plane of filters: who may change what, two people for what runs, and the reconciler that carries it out.

`service` is the entry for the API: it checks the role, opens one transaction (`filters.store.control.Change`) and calls
edit, approvals, commands or queries in it. Nothing there touches a target or git. `reconciler` brings targets and
git to what is stored, in steps that may be killed anywhere. `lifecycle` is the table of statuses.
"""
