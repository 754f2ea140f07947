"""Reconciles under load while Cassandra, Connect, Kafka and the engine are away in turn.

`rig` are the services, `keys` what is planted and compared, `scenario` the outages, their symptoms and the report.
"""
