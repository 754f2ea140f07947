"""API, people with keys, consumers and events on running services; shared by the demo and the fault play."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self, cast

import httpx

from headgate.core.identity.api_keys import Keys, KeyStore
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.runtime.ports import any_port
from headgate.demo.filters.events import Drawn, Sent, ToApi, send
from headgate.demo.filters.proof import FilterProof, Place, handled, places, prove, routed_records
from headgate.errors import ForbiddenError, OperationError, UnavailableError
from headgate.filters.loader import find_filter
from headgate.local.process import Child, Command, read_log, wait_until

FILTERS = "/api/v1/filters"
SECONDS = 30.0


class Person:
    """One identity; what the API refuses is raised in its own words."""

    def __init__(self, name: str, url: str, key: str) -> None:
        self.name = name
        headers = {"Authorization": f"Bearer {key}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=SECONDS, trust_env=False)

    def close(self) -> None:
        self.http.close()

    def filter(self, id: str) -> dict[str, Any]:
        return self.get(f"{FILTERS}/{id}")

    def act(self, id: str, action: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """`POST /api/v1/filters/{id}/{action}`."""
        return self.post(f"{FILTERS}/{id}/{action}", body or {})

    def change(self, id: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """A new version over the one that stands there now."""
        etag = self._asked("GET", f"{FILTERS}/{id}").headers["ETag"]
        headers = {"If-Match": etag}
        return _body(self._asked("PUT", f"{FILTERS}/{id}", document, headers))

    def get(self, path: str) -> dict[str, Any]:
        return _body(self._asked("GET", path))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return _body(self._asked("POST", path, body))

    def _asked(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        try:
            answer = self.http.request(method, path, json=body, headers=headers)
        except httpx.TransportError as error:
            raise UnavailableError("the API does not answer", why=str(error)) from error
        return self._answered(answer)

    def _answered(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            return answer
        words = f"{self.name} was answered {answer.status_code}"
        forbidden = answer.status_code == HTTPStatus.FORBIDDEN
        raise (ForbiddenError if forbidden else OperationError)(words, why=answer.text[:500])


def _body(answer: httpx.Response) -> dict[str, Any]:
    return cast("dict[str, Any]", answer.json())


DEALERS = ("DEALER-001", "DEALER-002", "DEALER-003")
NUMBERS = ("001", "002", "003")
SOURCE = "raw-event-headers"
SAMPLES = "schemas/event/samples/service-dealer-{}-event.json"
CONSUMERS = "consumers/dealer-{}/consumer.yml"
PEOPLE = {
    "ana": ("author", "approver"),
    "ben": ("approver",),
    "dora": ("deployer",),
    "shop": ("producer",),
}
READY_SECONDS, STOP_SECONDS, LIVE_SECONDS = 90.0, 20.0, 90.0


class Stage:
    """One project with running services; what it starts is stopped when it is left."""

    def __init__(self, root: Path, home: Path, store: OpsStore, environ: Mapping[str, str]) -> None:
        self.root, self.home, self.store, self._environ = root, home, store, dict(environ)
        self.documents = documents(root)
        self.expected: dict[str, list[str]] = {dealer: [] for dealer in DEALERS}
        self.posted = 0
        self.people: dict[str, Person] = {}
        self._stack, self._port = ExitStack(), any_port()
        self.api: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # What runs

    def child(self, log: str, *words: str) -> Child:
        """One of our own commands, for as long as this process lives."""
        argv = (sys.executable, "-m", "headgate.cli.main", *words)
        return Child(Command(argv, self.log(log), self.root, self._environ))

    def log(self, name: str) -> Path:
        return self.home / "logs" / f"{name}.log"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def serve(self) -> None:
        """The API, and somebody of each role who uses it."""
        keys = Keys(self.store.part(KeyStore))
        secrets = {who: keys.create(who, r, 1, "demo").secret for who, r in PEOPLE.items()}
        self._stack.callback(self._stop_api)
        self.start_api()
        for who, secret in secrets.items():
            self.people[who] = Person(who, self.url, secret)
            self._stack.callback(self.people[who].close)

    def start_api(self) -> None:
        """Start it where it was, and wait until it answers."""
        started = self.api = self.child("api", "serve", "--port", str(self._port), "--quiet")

        def ready() -> bool:
            if started.exit_code is not None:
                raise OperationError("the API did not start", why=read_log(self.log("api"))[-500:])
            try:
                return httpx.get(f"{self.url}/livez", timeout=2, trust_env=False).is_success
            except httpx.TransportError:
                return False

        if not wait_until(ready, READY_SECONDS, 0.1):
            raise UnavailableError("the API does not answer", why=read_log(self.log("api"))[-500:])

    def _stop_api(self) -> None:
        if self.api is not None and self.api.exit_code is None:
            self.api.stop(STOP_SECONDS)

    def consume(self) -> list[Child]:
        """The three consumers, as their configurations say."""
        started = [
            self.child(f"consumer-{number}", "filters", "consumer", CONSUMERS.format(number))
            for number in NUMBERS
        ]
        for one in started:
            self._stack.callback(one.stop, STOP_SECONDS)
        return started

    # What people do

    def create(self, say: Callable[[str], object]) -> None:
        """Three filters by ana, checked, with their SQL told."""
        ana = self.people["ana"]
        for document in self.documents.values():
            name = ana.post("/api/v1/filters", document)["id"]
            made, valid = ana.act(name, "generate"), ana.act(name, "validate")
            say(f"{name}\n{made['sql']}\n")
            if not (made["valid"] and valid["valid"]):
                raise OperationError(f"{name} is not valid", why=str(valid["errors"]))

    def refused_to_ana(self, name: str) -> str:
        """She has the role, and wrote it: that must be refused, in these words."""
        ana = self.people["ana"]
        try:
            ana.act(name, "approve", {"revision": ana.filter(name)["revision"]})
        except ForbiddenError as error:
            return error.one_line
        raise OperationError(f"ana approved {name}, which she wrote")

    def approve(self, name: str) -> None:
        ben = self.people["ben"]
        ben.act(name, "approve", {"revision": ben.filter(name)["revision"], "comment": "I see"})

    def order(self, name: str, action: str) -> None:
        """What dora asks for, once it is so."""
        dora = self.people["dora"]
        operation = dora.act(name, action)["operation"]
        end = time.monotonic() + LIVE_SECONDS
        while operation["state"] == "running" and time.monotonic() < end:
            time.sleep(0.1)
            operation = dora.get(f"/api/v1/operations/{operation['id']}")
        if operation["state"] != "succeeded":
            why = operation["error"] or ""
            raise OperationError(f"the {action} of {name} is {operation['state']}", why=why)

    # Events

    def post(self, events: Sequence[Drawn], patience: float = 30.0) -> Sent:
        done = send(ToApi(self.people["shop"].http), events, 0, patience, lambda _: None)
        self.posted += done.events
        return done

    def expect(self, told: Mapping[str, Sequence[str]]) -> None:
        for dealer, ids in told.items():
            self.expected[dealer] += ids

    def lacking(self, dealers: Iterable[str] = DEALERS) -> dict[str, int]:
        """How many events each dealer's consumer has still to handle."""
        states = {dealer: place.state for dealer, place in self.places().items()}
        seen = {dealer: handled(states[dealer]) for dealer in dealers}
        return {d: sum(name not in seen[d] for name in self.expected[d]) for d in dealers}

    def judged(self) -> int:
        return sum(routed_records(self.store, SOURCE).values())

    def arrived(
        self, say: Callable[[str], object], seconds: float, dealers: Iterable[str] = DEALERS
    ) -> None:
        """All that was posted is judged, and what these dealers must get has had its effect."""
        wanted, end = tuple(dealers), time.monotonic() + seconds
        while True:
            judged, lacking = self.judged(), self.lacking(wanted)
            if judged >= self.posted and not any(lacking.values()):
                return
            missing = ", ".join(f"{n:,} for {dealer}" for dealer, n in lacking.items() if n)
            words = f"{judged:,} of {self.posted:,} judged; still to come: {missing or 'none'}"
            if time.monotonic() > end:
                raise OperationError(
                    f"nothing moves: {words}",
                    why=f"waited {seconds:.0f} s",
                    fix=f"{self.home}/logs",
                )
            say(f"{words}\n")
            time.sleep(0.5)

    # The proof

    def places(self) -> dict[str, Place]:
        topics = {filter_of(d): str(own["outputTopic"]) for d, own in self.documents.items()}
        files = [self.root / CONSUMERS.format(number) for number in NUMBERS]
        return dict(zip(DEALERS, places(self.home, topics, files), strict=True))

    def prove(
        self, bootstrap: str, on_source: Mapping[str, int] | None = None
    ) -> tuple[FilterProof, ...]:
        """Every filter against ledger, topic and consumer; how often each event is on the source."""
        times = on_source or {}
        return tuple(
            prove(self.store, bootstrap, SOURCE, place, ids, sum(times.get(i, 1) - 1 for i in ids))
            for place, ids in zip(self.places().values(), self.expected.values(), strict=True)
        )


def filter_of(dealer: str) -> str:
    return f"service-by-{dealer.lower()}"


def documents(root: Path) -> dict[str, dict[str, Any]]:
    """The shipped filters, by dealer."""
    files = {dealer: find_filter(root, filter_of(dealer)) for dealer in DEALERS}
    return {dealer: json.loads(file.read_text("utf-8")) for dealer, file in files.items()}


def samples(root: Path) -> list[Drawn]:
    """The documents' three events, with who must get each."""
    bodies = [json.loads((root / SAMPLES.format(n)).read_text("utf-8")) for n in NUMBERS]
    return [
        Drawn(body["eventHeader"]["uuid"], "CarServiceDone", body, dealer)
        for dealer, body in zip(DEALERS, bodies, strict=True)
    ]


def expected(events: Iterable[Drawn], least: Decimal | None = None) -> dict[str, list[str]]:
    """Who must get what; with `least` only services of the first dealer that cost so much."""
    found: dict[str, list[str]] = {dealer: [] for dealer in DEALERS}
    for event in events:
        if event.dealer is None:
            continue
        if least is None or event.dealer != DEALERS[0] or amount(event.body) >= least:
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


def own_environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment with a home of its own, and nothing else of ours."""
    from headgate.config.schema import NAMES

    kept = {name: value for name, value in os.environ.items() if name not in NAMES.values()}
    return {**kept, "HEADGATE_HOME": str(home), **(more or {})}
