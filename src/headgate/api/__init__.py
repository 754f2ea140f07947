"""The HTTP server: it assembles the routes of all capabilities.

`app` builds the FastAPI app from the routers listed in `headgate.app` and refuses a route without a guard,
`document` completes its OpenAPI document, `health` answers probes and metrics, `server` runs it as a process.
"""
