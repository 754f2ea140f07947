"""The hasher: reads the rows that on-prem events name from Cassandra, hashes them, and sends the readings to Kafka.

Walk: `run` opens all parts by `plan` → `consumer` reads the group's records → `requests` parses what each asks for
→ `lookups` reads rows of the `table` → `readings` computes hash and version → `publisher` writes readings and dead
letters. `service` is the loop over these and commits offsets behind what was acknowledged; `metrics` counts.
Entry point: `run.run_hasher`.
"""
