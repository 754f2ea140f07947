"""Headgate: declared datasets, rules and filters on Kafka, Spark and Iceberg, every record accounted for."""

__version__ = "0.1.0"
