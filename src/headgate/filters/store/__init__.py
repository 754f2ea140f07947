"""Filters in the ops store: one file of values, one of tables, then rows and stores.

`control` is written by people and the reconciler, with an audit entry in each transaction; `routing` is desired
state (control plane) and observed state (router); `routed` is what each filter judged, from the ledger's rows.
"""
