"""Metrics: names, windows of event time, values for Prometheus, delivery to Kafka, HTTP and DogStatsD.

Counts meet the files in this order: `names` (the one table of names), `windows` (partials of a job become
records of closed windows, kept in the ops store), `delivery` (records of windows and batches on their way to the
sinks), `sinks` (Kafka, HTTP, DogStatsD). Beside it, `readings` computes every value from the ops store
and `prometheus` serves them.
Entry points: `windows.Emitter`, `delivery.Deliverer`, `readings.Readings`, `prometheus.MetricsServer`.
"""
