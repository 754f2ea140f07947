"""A consumer of routed events whose effects happen once: config → event (record, delivery) → sinks (effects and

deduplication in one SQLite transaction) → consumer (its Kafka group).
"""
