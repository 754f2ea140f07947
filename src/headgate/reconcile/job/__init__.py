"""The job of a reconciled pair on Spark.

`job` starts the stream over both topics; `states` aggregates their messages by key and window; `batch` stages,
judges and publishes one micro-batch, with `cross_window` for keys that other windows know more of; between batches
`sweep` judges keys that wait (`sweep_bounds` says which), and `publishers` send changes and status counts.
`target` names the tables and reads from their commits what a batch came to.
"""
