"""The report of a reconciliation: `gather` reads tables and ledger, `make` turns them into the one object of `model`,

`render` writes it as text, JSON and a page.
"""
