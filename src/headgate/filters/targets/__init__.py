"""Deployment targets of filters: `deployment` is the interface, with our engine as the first target; `confluent`

is Flink in Confluent Cloud, by way of `confluent_api`. `open_targets` opens those that the settings name.
"""
