"""Identity: who is asking, what their roles allow, and which fields are masked for everybody.

A request meets the files in this order: `authentication` (an API key or a signed token becomes an
identity), `api_keys` (keys, kept as hashes), `roles` (the table of operations and the roles that may call
them), `masking` (field names that speak of people, vehicles or money), `audit` (who did what, as a hash chain).
"""
