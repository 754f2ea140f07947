"""Cassandra as the database of the cloud's side.

`session` opens the only session: shapes of tables, scans, writes; `rows` reads many rows by key at once, `values`
converts between CQL's types and Python's. `connector` declares the connectors that poll a table through Kafka
Connect, `audit` copies changes of verdicts into a table. Spark never reads from Cassandra.
"""
