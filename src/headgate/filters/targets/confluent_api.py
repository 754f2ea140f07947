"""Client of Confluent Cloud's statements API: one call each, retried while that can help."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlsplit

import httpx

from headgate.config.settings import Settings
from headgate.errors import ForbiddenError, OperationError, SettingsError, UnavailableError

# Whoever deploys waits for this: the control plane tries again by itself.
SECONDS = 10.0
TRIES = 3
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 4.0
# Too many calls, or a server on its way up or down: the same call may succeed.
AGAIN = frozenset({429, 500, 502, 503, 504})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
LONGEST_TOLD = 500
_PART = re.compile(r"[A-Za-z0-9_-]+")


class Phase(StrEnum):
    """How a statement stands, in Confluent's words; a new word of theirs is taken as pending."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    STOPPED = "STOPPED"
    STOPPING = "STOPPING"
    DEGRADED = "DEGRADED"
    FAILING = "FAILING"
    FAILED = "FAILED"
    DELETING = "DELETING"


@dataclass(frozen=True)
class Statement:
    """One statement as the API tells of it."""

    name: str
    sql: str
    phase: Phase
    detail: str = ""
    stopped: bool = False


@dataclass(frozen=True)
class Place:
    """Where statements live and who sends them; the secret is never shown."""

    endpoint: str
    organization: str
    environment: str
    pool: str
    cluster: str
    key: str
    secret: str

    def __repr__(self) -> str:
        return f"Place({self.endpoint}, {self.organization}, {self.environment}, {self.pool})"

    @property
    def statements(self) -> str:
        inside = f"organizations/{self.organization}/environments/{self.environment}"
        return f"{self.endpoint.rstrip('/')}/sql/v1/{inside}/statements"


def place_of(settings: Settings) -> Place:
    """The place that the CONFLUENT_* settings name; each one that is missing is said."""
    place = Place(
        endpoint=settings.need("confluent_flink_api_endpoint"),
        organization=settings.need("confluent_organization_id"),
        environment=settings.need("confluent_environment_id"),
        pool=settings.need("confluent_flink_compute_pool_id"),
        cluster=settings.need("confluent_kafka_cluster_id"),
        key=settings.need("confluent_cloud_api_key"),
        secret=settings.need("confluent_cloud_api_secret"),
    )
    address = urlsplit(place.endpoint)
    if address.scheme != "https" and address.hostname not in LOOPBACK:
        raise SettingsError(
            "CONFLUENT_FLINK_API_ENDPOINT is not https",
            why="the key and its secret would travel in the open",
            fix="write https://flink.<region>.<cloud>.confluent.cloud",
        )
    for part in (place.organization, place.environment):
        if _PART.fullmatch(part) is None:
            raise SettingsError(f"{part!r} is no id of Confluent's")
    return place


class Statements:
    """The calls; each ends within `seconds` per try or raises."""

    def __init__(
        self,
        place: Place,
        seconds: float = SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.place, self._sleep = place, sleep
        self._client = httpx.Client(
            auth=(place.key, place.secret), timeout=seconds, trust_env=False, follow_redirects=False
        )

    def close(self) -> None:
        self._client.close()

    def get(self, name: str) -> Statement | None:
        """The statement; None when there is none of that name."""
        answer = self._asked("GET", f"/{name}")
        return None if answer.status_code == HTTPStatus.NOT_FOUND else _statement(answer)

    def create(self, name: str, sql: str) -> Statement | None:
        """Submit a statement; None when another text has that name already.

        A try whose answer was lost may have been taken: the same text under the name is success.
        """
        answer = self._asked("POST", "", self._body(name, sql))
        if answer.status_code == HTTPStatus.CONFLICT:
            standing = self.get(name)
            return standing if standing and standing.sql == sql else None
        return _statement(_taken(answer, f"create {name}"))

    def stop(self, name: str, *, stopped: bool) -> None:
        change = [{"op": "replace", "path": "/spec/stopped", "value": stopped}]
        _taken(self._asked("PATCH", f"/{name}", change), f"stop or resume {name}")

    def delete(self, name: str) -> None:
        """Ask for its deletion; one that is not there is no fault."""
        answer = self._asked("DELETE", f"/{name}")
        if answer.status_code != HTTPStatus.NOT_FOUND:
            _taken(answer, f"delete {name}")

    def _body(self, name: str, sql: str) -> dict[str, object]:
        place = self.place
        return {
            "name": name,
            "organization_id": place.organization,
            "environment_id": place.environment,
            "spec": {
                "statement": sql,
                "properties": {
                    "sql.current-catalog": place.environment,
                    "sql.current-database": place.cluster,
                },
                "compute_pool_id": place.pool,
                "stopped": False,
            },
        }

    def _asked(self, method: str, path: str, body: object | None = None) -> httpx.Response:
        pause, why = FIRST_PAUSE, ""
        for at in range(TRIES):
            wait = pause
            try:
                answer = self._client.request(method, self.place.statements + path, json=body)
                if answer.status_code not in AGAIN:
                    return _allowed(answer)
                why = f"it answered {answer.status_code}: {_told(answer)}"
                wait = _asked_for(answer.headers) or pause
            except httpx.TransportError as error:
                why = f"{type(error).__name__}: {error}"
            if at < TRIES - 1:
                self._sleep(wait)
                pause = min(pause * 2, LONGEST_PAUSE)
        raise UnavailableError(
            f"Confluent's Flink API at {self.place.endpoint} is away",
            why=f"{TRIES} tries; at last {why}",
            fix="try again later; check CONFLUENT_FLINK_API_ENDPOINT",
        )


def _asked_for(headers: Mapping[str, str]) -> float | None:
    """How long the server asks to be left alone, within reason."""
    given = headers.get("Retry-After", "")
    return min(float(given), LONGEST_PAUSE) if given.isdecimal() else None


def _allowed(answer: httpx.Response) -> httpx.Response:
    if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise ForbiddenError(
            f"Confluent refused the key: {answer.status_code}",
            why=_told(answer),
            fix="check CONFLUENT_CLOUD_API_KEY, its secret, and that it is a Flink key of this environment",
        )
    return answer


def _taken(answer: httpx.Response, what: str) -> httpx.Response:
    if answer.is_success:
        return answer
    raise OperationError(
        f"Confluent did not {what}: {answer.status_code}",
        why=_told(answer),
        fix="check the CONFLUENT_* settings and the statement's SQL",
    )


def _told(answer: httpx.Response) -> str:
    """Their own words, when they are in the form that their API gives errors."""
    try:
        errors = cast("dict[str, Any]", answer.json())["errors"]
        return "; ".join(str(error.get("detail", error)) for error in errors)[:LONGEST_TOLD]
    except (ValueError, KeyError, TypeError, AttributeError):
        return answer.text[:LONGEST_TOLD]


def _statement(answer: httpx.Response) -> Statement:
    try:
        body = cast("dict[str, Any]", _taken(answer, "tell of a statement").json())
        spec, status = body["spec"], cast("dict[str, Any]", body.get("status") or {})
        return Statement(
            name=str(body["name"]),
            sql=str(spec["statement"]),
            phase=_phase(str(status.get("phase", ""))),
            detail=str(status.get("detail") or ""),
            stopped=bool(spec.get("stopped")),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise OperationError(
            "Confluent's answer is not what its API describes", why=answer.text[:LONGEST_TOLD]
        ) from error


def _phase(word: str) -> Phase:
    return Phase(word) if word in set(Phase) else Phase.PENDING
