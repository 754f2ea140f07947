"""Cassandra as the cloud's side: `session` (tables, scans, writes), `rows` (many reads by key at once), `values`,

`connector` (polling it by Kafka Connect), `audit` (changes of verdicts written into it).
"""
