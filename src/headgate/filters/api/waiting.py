"""`Prefer: wait=N`: hold the answer until an operation has ended, or N seconds are over."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import anyio
from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from headgate.filters.api.api_models import DeploymentOut
from headgate.filters.store.control_model import Operation
from headgate.web.served import Served

MOST_SECONDS = 60
_LOOK_EVERY = 0.1
_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})\"?(?=$|[,;\s])", re.IGNORECASE)


def wanted_seconds(request: Request) -> int:
    """What the caller would wait; a preference that cannot be read is none (RFC 7240)."""
    found = _WAIT.search(request.headers.get("prefer", ""))
    return min(int(found[1]), MOST_SECONDS) if found else 0


async def answered(request: Request, here: Served, begun: Callable[[], Operation]) -> Response:
    """200 once what begins here has ended, else 202; with the place where it can be followed."""
    operation, seconds = await run_in_threadpool(begun), wanted_seconds(request)
    until = time.monotonic() + seconds
    while not operation.state.ended and time.monotonic() < until and not here.stopping.is_set():
        await anyio.sleep(_LOOK_EVERY)
        operation = await run_in_threadpool(here.service.operation, operation.id)
    record = await run_in_threadpool(here.service.get, operation.filter_id)
    headers = {"Location": f"/api/v1/operations/{operation.id}"}
    if seconds:
        headers["Preference-Applied"] = f"wait={seconds}"
    body = DeploymentOut.of(operation, record).model_dump_json(by_alias=True)
    status = 200 if operation.state.ended else 202
    return Response(body, status, headers=headers, media_type="application/json")
