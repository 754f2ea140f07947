"""Kafka without Spark: topics, offsets, records, values of a schema registry, Kafka Connect.

`topics` asks and changes a broker; `offsets` says what a query follows, in the ledger's ranges, which
records have expired, and keeps a consumer group's offsets; `reader` reads a range of offsets,
`producer` writes records; `schema_registry` and `codecs` handle values in the registry's wire
format; `connect_rest` drives Kafka Connect. Every call ends in bounded time or raises
UnavailableError.
"""
