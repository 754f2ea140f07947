"""Whole rows of either side, read by key: from the lake, from Parquet files, from Cassandra."""
