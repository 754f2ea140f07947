"""Toolkit for the HTTP routes of every capability; it knows none of them.

A request meets the files in this order: `connection_limits` (time for head and body, number of waiting
connections), `middleware` (request id, body size, safe headers, access log), `authentication` (identity,
role, query parameters), `limits` (concurrent expensive operations, wrong keys), `idempotency`
(Idempotency-Key, ETags). Errors leave as `problems` (RFC 9457). `app_state` holds what all routes of one
server depend on.
"""
