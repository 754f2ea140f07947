"""A consumer of routed events whose effects happen once, however often a record is delivered.

Walk: `config` (the consumer's YAML file) → `consumer` (its Kafka group) → `event` (the record and its delivery
identity) → `sinks` (effects and deduplication in one SQLite transaction).
Entry point: `consumer.DealerConsumer`, for `headgate filters consumer`.
"""
