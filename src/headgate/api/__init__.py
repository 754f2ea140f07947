"""The HTTP server: puts the routes of all capabilities together and runs them as one process.

`app` builds the FastAPI app from the routers listed in `headgate.app` and refuses a route without a guard,
`document` completes its OpenAPI document, `health` answers probes and metrics, `server` runs it with the
reconciler of filters in the background. The routes of a capability stand in its own folder, their toolkit in `web`.
Entry points: `server.serve` for `headgate serve`, `app.create_app` for tests.
"""
