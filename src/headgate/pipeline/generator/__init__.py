"""Make sample data and send Parquet files to a dataset's topic.

Walk: declaration (sample.yml) → sample (rows, Parquet file) → source (check the file) → send.
"""
