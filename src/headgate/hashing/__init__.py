"""The row hash: one contract, the same digits in Python, Spark SQL and Java.

`types` are the logical types of fields and the Spark columns that fit them; `contract` declares which
fields are hashed, in which order; `python` and `spark` turn a row into the text that is hashed;
`typed_json` reads and writes rows as JSON without loss, and the vectors that all implementations
share. The specification is docs/hash_contract.md.
Entry points: `contract.load_contract`, `python.row_hash`, `spark.row_hash_sql`. The commands are in
`cli/hash.py`.
"""
