"""The ops store: everything that must outlive a process, in one SQLite file or PostgreSQL database.

A batch meets the files in this order: `runs` (who is the active engine, which run of a job is under way),
`batches` (the intent before the first output, the ledger row after the last), `offset_ranges` (do ranges join
up), `counts` (what rules matched and which fields drifted in the batch), `windows` (metrics windows it touched,
and how far each sink has sent them). `model` are the values, `ranges` what a batch reads of a topic, a pair or
a table, `tables` the tables of the core, `database` opens and migrates.
Entry point: `ops_store.OpsStore.open(url)`; every method of it is one transaction. Capabilities that keep rows
of their own have a store over the same engine and clock: `store.part(RoutingStore)`.
"""
