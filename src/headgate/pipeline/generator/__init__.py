"""Makes sample data and sends Parquet files to a dataset's topic.

Walk: `declaration` (`sample.yml`) → `sample` (rows, written as a Parquet file) → `source` (checks the file against
the manifest) → `parquet_to_kafka` (each row as JSON to the topic). Entry points: `sample.write_sample`, `parquet_to_kafka.generate`.
"""
