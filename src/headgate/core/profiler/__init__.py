"""Profile a Parquet file: column types, values, time formats, the likeliest event time and key.

Walk: rows (read the file, open DuckDB) → scan (types and values of each column) → draft (choose event
time and key). Results are the values of `model`. Entry point: `draft.draw_up`.
`headgate dataset new` drafts a manifest from it, `headgate rules suggest` proposes rules.
"""
