"""Kafka Connect's REST API: read the state of connectors and tasks, create, change and delete them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from headgate.core.runtime.http import NoAnswerError, send_json
from headgate.errors import DeclarationError, Fault, OperationError, UnavailableError, UsageError

if TYPE_CHECKING:
    from httpx import Response

BUSY, NOT_FOUND = 409, 404
# A worker that has just started, or lost another, first shares out the tasks.
BUSY_SECONDS = 20.0
PAUSE_SECONDS = 0.3
RUNNING, FAILED = "RUNNING", "FAILED"
NO_PLUGIN = "Failed to find any class that implements"
HIDDEN = ("password", "secret", "token", "jaas")
MASK = "********"


@dataclass(frozen=True)
class TaskState:
    """One task as the worker sees it; `trace` begins with why it failed."""

    id: int
    state: str
    worker: str
    trace: str = ""

    @property
    def why(self) -> str:
        return self.trace.strip().partition("\n")[0].strip()


@dataclass(frozen=True)
class ConnectorState:
    """A connector and its tasks."""

    name: str
    kind: str
    state: str
    worker: str
    tasks: tuple[TaskState, ...]
    trace: str = ""

    @property
    def runs(self) -> bool:
        return self.state == RUNNING and bool(self.tasks) and not self.not_running

    @property
    def not_running(self) -> tuple[TaskState, ...]:
        return tuple(task for task in self.tasks if task.state != RUNNING)

    @property
    def failed(self) -> bool:
        return self.state == FAILED or any(task.state == FAILED for task in self.tasks)

    @property
    def why(self) -> str:
        """The first line of the first trace, with what it was caused by."""
        traces = [self.trace, *(task.trace for task in self.tasks)]
        return next((told(trace) for trace in traces if trace.strip()), "")


def told(trace: str) -> str:
    """What a Java trace says: its first line, and its last cause when there is one."""
    lines = [line.strip() for line in trace.strip().splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return lines[0] + (f"; caused by {causes[-1]}" if causes else "")


class ConnectRest:
    """One worker's REST, which speaks for its whole group."""

    def __init__(self, url: str, timeout: float = 10.0) -> None:
        self._url, self._timeout = url.rstrip("/"), timeout

    def plugins(self) -> tuple[tuple[str, str, str], ...]:
        """Class, kind and version of each plugin."""
        found = self._ask("GET", "/connector-plugins?connectorsOnly=false")
        return tuple((p["class"], p["type"], p.get("version") or "") for p in found)

    def states(self) -> tuple[ConnectorState, ...]:
        """Every connector with its tasks."""
        found = self._ask("GET", "/connectors?expand=status")
        states = (_state(entry["status"]) for entry in found.values() if "status" in entry)
        return tuple(sorted(states, key=lambda state: state.name))

    def state(self, name: str) -> ConnectorState | None:
        """A connector with its tasks; None when there is none, or none that has started yet."""
        found = self._ask("GET", f"/connectors/{quote(name, safe='')}/status", missing=None)
        return _state(found) if found else None

    def config(self, name: str) -> Mapping[str, str] | None:
        """How a connector is configured; None when there is none."""
        return self._ask("GET", f"/connectors/{quote(name, safe='')}/config", missing=None)

    def faults(self, config: Mapping[str, str], file: str) -> tuple[Fault, ...]:
        """What the connector's own plugin finds wrong, field by field."""
        plugin = config.get("connector.class", "")
        if not plugin:
            return (Fault(file, None, "connector.class", "is missing", "Name the plugin's class"),)
        path = f"/connector-plugins/{quote(plugin, safe='')}/config/validate"
        try:
            found = self._ask("PUT", path, dict(config))
        except OperationError as error:
            if NO_PLUGIN not in error.why:
                raise
            fix = "headgate connect plugins shows what is there"
            return (Fault(file, None, "connector.class", f"{plugin} is not there", fix),)
        values = (entry["value"] for entry in found["configs"])
        return tuple(
            Fault(file, None, value["name"], error.rstrip("."), "Correct it, then deploy again")
            for value in values
            for error in value["errors"]
        )

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create the connector or change it."""
        path = f"/connectors/{quote(name, safe='')}/config"
        self._ask("PUT", path, {**config, "name": name})

    def restart(self, name: str, *, failed_only: bool) -> None:
        only = "true" if failed_only else "false"
        path = f"/connectors/{quote(name, safe='')}/restart?includeTasks=true&onlyFailed={only}"
        self._ask("POST", path)

    def delete(self, name: str) -> None:
        self._ask("DELETE", f"/connectors/{quote(name, safe='')}")

    def wait_running(self, name: str, limit: float) -> ConnectorState:
        """Wait until the connector and all its tasks run; an error says why they do not."""
        end = time.monotonic() + limit
        while True:
            state = self.state(name)
            if state is not None and state.runs:
                return state
            if state is not None and state.failed:
                raise not_running(name, state.why)
            if time.monotonic() > end:
                raise not_running(name, f"not running after {limit:.0f} s")
            time.sleep(PAUSE_SECONDS)

    def _ask(self, verb: str, path: str, body: object = None, missing: object = ...) -> Any:
        """One request, repeated while the group shares out its tasks."""
        end = time.monotonic() + BUSY_SECONDS
        while True:
            answer = self._once(verb, path, body)
            if answer.is_success:
                return answer.json() if answer.content else None
            if answer.status_code == BUSY and time.monotonic() < end:
                time.sleep(PAUSE_SECONDS)
            elif answer.status_code == NOT_FOUND and missing is not ...:
                return missing
            else:
                raise _refused(answer, path)

    def _once(self, verb: str, path: str, body: object) -> Response:
        try:
            return send_json(verb, f"{self._url}{path}", self._timeout, body)
        except NoAnswerError as error:
            raise UnavailableError(
                "Kafka Connect does not answer",
                why=f"{self._url}: {error}",
                fix="headgate local up --with connect, or set KAFKA_CONNECT_URL",
            ) from None


def not_running(name: str, why: str) -> OperationError:
    return OperationError(
        f"the connector {name} does not run",
        why=why,
        fix=f"correct it and deploy it again, or: headgate connect restart {name}",
    )


def require_valid(faults: tuple[Fault, ...]) -> None:
    """Refuse a configuration with everything that is wrong in it."""
    if faults:
        raise DeclarationError(faults)


def shown(config: Mapping[str, str]) -> dict[str, str]:
    """A configuration as a person may see it."""
    return {
        key: MASK if any(word in key.lower() for word in HIDDEN) else value
        for key, value in config.items()
    }


def _refused(answer: Response, path: str) -> UsageError | OperationError:
    try:
        words = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        words = answer.reason_phrase
    if answer.status_code == NOT_FOUND:
        return UsageError("there is no such connector", why=words, fix="headgate connect list")
    what = f"Kafka Connect refused it ({answer.status_code})"
    return OperationError(what, why=words, fix=f"see {path}")


def _state(found: Mapping[str, Any]) -> ConnectorState:
    connector = cast("dict[str, str]", found["connector"])
    return ConnectorState(
        found["name"],
        found.get("type", "unknown"),
        connector["state"],
        connector.get("worker_id", ""),
        tuple(
            TaskState(t["id"], t["state"], t.get("worker_id", ""), t.get("trace", ""))
            for t in found["tasks"]
        ),
        connector.get("trace", ""),
    )


TRANSFORMS = "org.apache.kafka.connect.transforms"


@dataclass(frozen=True)
class Connector:
    """A connector as Connect's REST takes it."""

    name: str
    config: Mapping[str, str]

    @property
    def text(self) -> str:
        """The file; the same connector gives the same bytes."""
        return json.dumps({"name": self.name, "config": dict(self.config)}, indent=2) + "\n"


def transforms(chain: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    settings = {
        f"transforms.{alias}.{key}": value
        for alias, options in chain.items()
        for key, value in options.items()
        if value
    }
    return {"transforms": ",".join(chain), **settings}
