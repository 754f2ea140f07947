"""HTTP routes and models of filters, their operations, drift from git, and the events of producers; the client.

`filters` takes documents, `actions` reviews and deploys them, `operations` follows what was begun (with audit
log, drift and the event stream), `events` takes the events that filters route. `service` opens what a server runs
beside them: git, targets, the reconciler. `models` and `preview_models` are shared by the routes and by
`client`, which the commands of filters use.
"""
