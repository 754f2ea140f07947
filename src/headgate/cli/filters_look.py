"""What the steps of the filters' demo stand on: the API's child, the consumers' children, the events."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from headgate.errors import OperationError, UnavailableError

if TYPE_CHECKING:
    from headgate.feeds.events.drawing import Drawn
    from headgate.local.process import Child

READY_SECONDS = 60.0
DEALERS = ("DEALER-001", "DEALER-002", "DEALER-003")
SOURCE = "raw-event-headers"
SAMPLES = "schemas/event/samples/service-dealer-{}-event.json"
CONSUMERS = "consumers/dealer-{}/consumer.yml"
NUMBERS = ("001", "002", "003")


def filter_of(dealer: str) -> str:
    return f"service-by-{dealer.lower()}"


def child(words: Sequence[str], log: Path) -> Child:
    """One of our own commands, for as long as this process lives."""
    from headgate.local.process import Child, Command

    argv = (sys.executable, "-m", "headgate.cli.main", *words)
    return Child(Command(argv, log, Path.cwd(), dict(os.environ)))


def serve(log: Path, port: int) -> tuple[Child, str]:
    """The API, once it is ready."""
    import httpx

    from headgate.local.process import read_log, wait_until

    url = f"http://127.0.0.1:{port}"
    started = child(("serve", "--port", str(port), "--quiet"), log)

    def ready() -> bool:
        if started.exit_code is not None:
            raise OperationError("the API did not start", why=read_log(log)[-500:])
        try:
            return httpx.get(f"{url}/livez", timeout=2, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    if not wait_until(ready, READY_SECONDS, 0.2):
        started.kill()
        raise UnavailableError("the API does not answer", why=read_log(log)[-500:])
    return started, url


def documents(root: Path) -> dict[str, dict[str, Any]]:
    """The shipped filters, by dealer."""
    from headgate.spec.filter_loader import find_filter

    files = {dealer: find_filter(root, filter_of(dealer)) for dealer in DEALERS}
    return {d: json.loads(file.read_text("utf-8")) for d, file in files.items()}


def samples(root: Path) -> list[Drawn]:
    """The documents' three events, as whoever must get them knows them."""
    from headgate.feeds.events.drawing import Drawn

    bodies = [json.loads((root / SAMPLES.format(n)).read_text("utf-8")) for n in NUMBERS]
    return [
        Drawn(body["eventHeader"]["uuid"], "CarServiceDone", body, dealer)
        for dealer, body in zip(DEALERS, bodies, strict=True)
    ]


def expected(events: Iterable[Drawn], least: Decimal | None = None) -> dict[str, list[str]]:
    """Who must get what; with `least` only services of the first dealer that cost so much."""
    found: dict[str, list[str]] = {dealer: [] for dealer in DEALERS}
    for event in events:
        dear = least is None or event.dealer != DEALERS[0] or amount(event.body) >= least
        if event.dealer is not None and dear:
            found[event.dealer].append(event.id)
    return found


def amount(body: Mapping[str, object]) -> Decimal:
    [entity] = cast("list[dict[str, Any]]", body["entities"])
    return Decimal(str(entity["amountPaid"]))


def dearer(document: Mapping[str, Any], least: Decimal) -> dict[str, Any]:
    """The same filter for services that cost at least so much."""
    more = {
        "field": "header_data.amountPaid",
        "operator": "greaterThanOrEqual",
        "value": float(least),
        "valueType": "number",
    }
    return {**document, "conditions": [*document["conditions"], more]}
