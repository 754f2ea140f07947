"""Identifies the caller of a route, checks the role, and refuses unknown query parameters.

`allowed("operation")` is the dependency of a route; the operation must be in the policy table. It also claims
the Idempotency-Key and takes a slot of `limits` until the answer is made.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from headgate.core.identity import roles as policy
from headgate.core.identity.api_keys import key_id_in
from headgate.core.identity.authentication import is_loopback
from headgate.core.identity.roles import NOBODY, Identity
from headgate.declarations.errors import suggestion
from headgate.errors import DeclarationError, Fault, UnauthenticatedError
from headgate.web.app_state import served
from headgate.web.idempotency import claim
from headgate.web.limits import KINDS
from headgate.web.problems import QUERY

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
# Headers by which proxies, balancers and networks of caches say that they pass a request on.
_FORWARDED = re.compile(
    r"via|forwarded|x-forwarded(-.*)?|x-real-.*|x-original-.*|x-envoy-.*|x-amzn?-.*|cf-.*|cdn-loop"
    r"|fastly-.*|akamai-.*|x-akamai-.*|x-azure-.*|x-cloud-trace-context|(.+-)?client-ip"
)
_PORT = re.compile(r":\d*$")
# In the access log, of a request that shows no key and no token.
NO_CALLER = "-"


@dataclass(frozen=True)
class Guard:
    """Gives the identity that asks for this operation, or refuses."""

    operation: str

    def __call__(self, request: Request) -> Iterator[Identity]:
        identity = _identity(request, self.operation)
        refuse_odd_parameters(request)
        claim(request, identity)
        with _place(request, self.operation, identity.name):
            yield identity


def allowed(operation: str) -> Guard:
    """The dependency of a route: `by: Annotated[Identity, Depends(allowed("…"))]`.

    The operation must be a row of `roles.OPERATIONS`, and the route's `operation_id` the same name.
    """
    if operation not in policy.OPERATIONS:
        raise LookupError(f"{operation} has no rule in core/identity/roles.py")
    return Guard(operation)


@contextmanager
def _place(request: Request, operation: str, caller: str) -> Generator[None]:
    """Until the answer is made; most operations need none."""
    kind = KINDS.get(operation)
    if kind is None:
        yield
        return
    places = served(request).places
    places.take(kind, caller)
    try:
        yield
    finally:
        places.give_back(kind, caller)


def guarded(route: APIRoute) -> str | None:
    """The operation that guards a route, if one does."""
    calls = (dependency.call for dependency in route.dependant.dependencies)
    return next((call.operation for call in calls if isinstance(call, Guard)), None)


def _identity(request: Request, operation: str) -> Identity:
    authenticator = served(request).authenticator
    # Until somebody is known: the key that was shown, of which the id is no secret.
    request.state.caller = shown_key(credentials(request))
    try:
        identity = authenticator.identify(credentials(request))
    except UnauthenticatedError:
        served(request).wrong_keys.note(_peer(request))
        raise
    if identity is not None:
        identity = replace(identity, peer=_peer(request))
        request.state.caller = identity.name
        policy.require(identity, operation)
        return identity
    if authenticator.is_new and _from_this_machine(request):
        policy.require_before_the_first_key(operation)
        return NOBODY
    raise UnauthenticatedError(
        "this needs a key or a token",
        fix="send `Authorization: Bearer …`; `headgate keys create` makes a key",
    )


def credentials(request: Request) -> str | None:
    """The key or token that a request shows."""
    scheme, _, words = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and words.strip():
        return words.strip()
    return request.headers.get("x-api-key")


def shown_key(credentials: str | None) -> str:
    """What the log may say of credentials that do not hold: the id of a key, never a secret."""
    if credentials is None:
        return NO_CALLER
    id = key_id_in(credentials)
    return f"key:{id}?" if id else "unknown?"


def _from_this_machine(request: Request) -> bool:
    """By peer and by Host: a page in a browser here must not reach it under a name of its own.

    What a proxy passes on comes from anywhere.
    """
    if any(_FORWARDED.fullmatch(name.lower()) for name in request.headers):
        return False
    host = _PORT.sub("", request.headers.get("host", "")).lower()
    return host in LOCAL_NAMES and is_loopback(_peer(request))


def _peer(request: Request) -> str:
    return request.client.host if request.client else ""


def refuse_odd_parameters(request: Request) -> None:
    """DeclarationError for query parameters that the route does not have, and for NULs in any."""
    known = known_parameters(request.scope["route"])
    faults = [
        Fault(QUERY, None, name, "is no parameter of this", suggestion(name, known, "parameters"))
        for name in request.query_params
        if name not in known
    ]
    faults += [
        Fault(QUERY, None, name, "has a NUL in it", "Leave it away.")
        for name, value in request.query_params.multi_items()
        if "\0" in value
    ]
    if faults:
        raise DeclarationError(faults)


def known_parameters(route: APIRoute) -> frozenset[str]:
    return frozenset(_names(route.dependant))


def _names(asked: Dependant) -> Iterator[str]:
    yield from (field.alias for field in asked.query_params)
    for below in asked.dependencies:
        yield from _names(below)
