"""The report of a reconciliation: as text, as JSON and as one HTML page, all from one object.

Walk: `gather` reads tables and ledger → `make` turns them into that object (pure) → `model` defines it →
`render` writes it. Entry points: `gather.reconcile_report`, `render.write_report`.
"""
