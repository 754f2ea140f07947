"""The hasher: on-prem events ask for keys, rows are read from Cassandra and hashed, readings go to the cloud's topic.

The walk: `run` opens all parts; `consumer` reads the group's records, `requests` says what each asks for, `lookups`
reads rows of the `table`, `readings` makes hash and version of them, `publisher` writes readings and dead letters,
`service` ties these together and commits offsets behind what was acknowledged.
"""
