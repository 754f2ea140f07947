"""Deployment targets of filters: where an approved filter runs.

`deployment` has the interface of a target and our own engine as the first one; `confluent` is Flink in Confluent
Cloud, by the REST client `confluent_api`. The reconciler calls a target from stored state alone.
Entry point: `deployment.open_targets`, which opens the targets that the settings name.
"""
