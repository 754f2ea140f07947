"""Does the server live, can it work, and which version is it."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import BaseModel

from headgate import __version__
from headgate.web.served import ServedHere

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """`parts` names what was asked, and how it is."""

    status: str
    parts: dict[str, str] = {}


class Version(BaseModel):
    version: str


@router.get("/livez", operation_id="livez")
async def livez() -> Health:
    """The process answers."""
    # `async`, so that it waits for no thread: those may all wait for the ops store.
    return Health(status="ok")


@router.get("/readyz", operation_id="readyz", responses={503: {"model": Health}})
def readyz(here: ServedHere, response: Response) -> Health:
    """The ops store takes writes, and the server is not stopping."""
    parts = {"opsStore": "ok" if here.store_probe.is_writable() else "away"}
    parts |= {name: _shown(trouble()) for name, trouble in here.troubles.items()}
    if here.stopping.is_set() or parts["opsStore"] != "ok":
        response.status_code = 503
        return Health(status="stopping" if here.stopping.is_set() else "unready", parts=parts)
    return Health(status="ok", parts=parts)


def _shown(trouble: str) -> str:
    """What fails, without the details, which are for the log and for those who have a key."""
    return f"troubled: {trouble.partition(' | ')[0]}" if trouble else "ok"


@router.get("/version", operation_id="version")
def version() -> Version:
    """Which Headgate this is."""
    return Version(version=__version__)
