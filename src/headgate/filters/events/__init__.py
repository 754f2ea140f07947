"""Events of producers: validated JSON, written to PostgreSQL, followed by Debezium into the source topic.

exact_json (numbers as written) → model (schema, faults, `header_data`) → database (tables, migrations, writer,
connector). The routes are in `filters/api/events`.
"""
