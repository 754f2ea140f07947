"""Builds the FastAPI app: routers, shared state, error handlers, middleware; refuses a route without its guard.

A route is served only if its `operation_id` has a row in the table of operations and the dependency
`allowed("<operation_id>")`, or is public by that table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from headgate import __version__
from headgate import app as composition
from headgate.api.document import describe
from headgate.config.settings import Settings
from headgate.core.identity.api_keys import Keys, KeyStore
from headgate.core.identity.authentication import Authenticator, verifier_of
from headgate.core.identity.roles import PUBLIC
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.api.filters import FilterState
from headgate.filters.control.service import FilterService
from headgate.web import problems
from headgate.web.app_state import StoreProbe
from headgate.web.authentication import guarded
from headgate.web.middleware import Manners

TITLE = "Headgate"
OPENAPI_PATH = "/api/v1/openapi.json"
ROUTERS: tuple[APIRouter, ...] = tuple(map(composition.load, composition.ROUTERS))


def create_app(
    settings: Settings,
    store: OpsStore,
    service: FilterService,
    reload: Callable[[], Settings] | None = None,
) -> FastAPI:
    """The app over this store; LookupError when a route has no guard.

    `reload` reads the settings again, for services that are started after the server.
    """
    app = FastAPI(
        title=TITLE,
        version=__version__,
        openapi_url=OPENAPI_PATH,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    authenticator = Authenticator(Keys(store.part(KeyStore)), verifier_of(settings))
    routes = tuple(own_routes(ROUTERS))
    refuse_unguarded(routes)
    probe = StoreProbe(store)
    state = FilterState(settings, store, authenticator, probe, routes, service=service)
    app.state.served = state
    for entry in composition.API_RESOURCES:
        state.closing.callback(composition.load(entry)(app, settings, reload or (lambda: settings)))
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    app.add_middleware(Manners)
    # FastAPI's way to say it: the method of this one app is replaced.
    app.openapi = lambda: describe(app)
    return app


def own_routes(routers: Iterable[APIRouter]) -> Iterator[APIRoute]:
    """Every route of these routers; LookupError for one of a kind that we could not judge."""
    for router in routers:
        for route in router.routes:
            if not isinstance(route, APIRoute):
                raise LookupError(f"{route} is no route of ours")
            yield route


def refuse_unguarded(routes: Iterable[APIRoute]) -> None:
    """Nothing is served that the table of operations does not know."""
    for route in routes:
        if route.operation_id not in PUBLIC and guarded(route) != route.operation_id:
            raise LookupError(f"{route.path} is not guarded by {route.operation_id}")
