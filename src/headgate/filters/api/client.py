"""Python client of the API: the models of the server, and its problems raised as the errors that the server raised.

A request whose connection broke is sent again under the same Idempotency-Key. Since errors are the same on both
sides, so are the exit codes of commands.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from headgate.errors import (
    DeclarationError,
    Fault,
    HeadgateError,
    IllegalTransitionError,
    OperationError,
    UnavailableError,
)
from headgate.filters.api.models import (
    AuditList,
    DeploymentOut,
    DiffOut,
    DocumentValidationOut,
    DriftList,
    FilterList,
    FilterOut,
    GeneratedOut,
    Happened,
    LedgerOut,
    MendOut,
    OperationOut,
    RevisionList,
    StatusOut,
    ValidationOut,
)
from headgate.filters.api.preview_models import PreviewOut
from headgate.web.models import Problem, ProblemFault

BODY = "the request"


def error_of(problem: Problem) -> HeadgateError:
    """The kind of its code; without one we know, by its status."""
    if problem.errors:
        return DeclarationError([_fault(fault) for fault in problem.errors])
    kind = next((kind for kind in _kinds(HeadgateError) if kind.code == problem.code), None)
    if kind is IllegalTransitionError:
        return IllegalTransitionError(problem.detail, allowed=problem.allowed, fix=problem.fix)
    if kind is None or problem.status >= 500:
        kind = UnavailableError if problem.status >= 500 else OperationError
    return kind(problem.detail, why=_traced(problem), fix=problem.fix)


def _traced(problem: Problem) -> str:
    return f"request {problem.request_id}" if problem.status >= 500 and problem.request_id else ""


def _fault(fault: ProblemFault) -> Fault:
    place = fault.pointer if fault.parameter is None else fault.parameter
    return Fault(BODY, None, place or "(whole)", fault.detail, fault.fix)


def _kinds(kind: type[HeadgateError]) -> Iterator[type[HeadgateError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == HeadgateError.__module__:
            yield from _kinds(below)


SECONDS = 30.0
LOOK_EVERY = 0.25
TRIES = 3
FILTERS = "/api/v1/filters"
Model = TypeVar("Model", bound=BaseModel)


class Client:
    """One server. A request that got no answer is sent again under the same Idempotency-Key."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        seconds: float = SECONDS,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._url = url
        self._http = httpx.Client(
            base_url=url, headers=headers, timeout=seconds, transport=transport, trust_env=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    # Filters

    def list(
        self,
        status: str | None = None,
        consumer: str | None = None,
        q: str | None = None,
        limit: int = 50,
    ) -> Iterator[FilterOut]:
        """All that fit, page after page."""
        asked = {"status": status, "consumer": consumer, "q": q, "limit": limit, "after": None}
        while True:
            page = self._get(FILTERS, FilterList, asked)
            yield from page.filters
            if page.next is None:
                return
            asked["after"] = page.next

    def get(self, id: str) -> FilterOut:
        return self._get(f"{FILTERS}/{id}", FilterOut)

    def etag(self, id: str) -> str:
        """The state that it has now, for a change."""
        return self.get(id).etag

    def create(self, document: Mapping[str, Any]) -> FilterOut:
        return self._post(FILTERS, FilterOut, document)

    def update(self, id: str, document: Mapping[str, Any], etag: str) -> FilterOut:
        headers = {"If-Match": f'"{etag}"'}
        answer = self._ask("PUT", f"{FILTERS}/{id}", body=document, headers=headers)
        return _read(answer, FilterOut)

    def delete(self, id: str, etag: str) -> FilterOut | None:
        """None: it is gone. Otherwise it waits for the approval of somebody else."""
        answer = self._ask("DELETE", f"{FILTERS}/{id}", headers={"If-Match": f'"{etag}"'})
        return None if answer.status_code == 204 else _read(answer, FilterOut)

    def generate(self, id: str, target: str | None = None) -> GeneratedOut:
        asked = f"?target={target}" if target else ""
        return self._post(f"{FILTERS}/{id}/generate{asked}", GeneratedOut)

    def validate(self, id: str, sql: str | None = None) -> ValidationOut:
        return self._post(f"{FILTERS}/{id}/validate", ValidationOut, {"sql": sql})

    def validate_document(self, document: Mapping[str, Any]) -> DocumentValidationOut:
        return self._post(f"{FILTERS}:validate", DocumentValidationOut, document)

    def dry_run(self, id: str, last: int, samples: int) -> PreviewOut:
        return self._post(f"{FILTERS}/{id}/dry-run?last={last}&samples={samples}", PreviewOut)

    def dry_run_document(self, document: Mapping[str, Any], last: int, samples: int) -> PreviewOut:
        path = f"{FILTERS}:dry-run?last={last}&samples={samples}"
        return self._post(path, PreviewOut, document)

    def approve(self, id: str, revision: str, comment: str = "") -> FilterOut:
        body = {"revision": revision, "comment": comment}
        return self._post(f"{FILTERS}/{id}/approve", FilterOut, body)

    def reject(self, id: str, reason: str) -> FilterOut:
        return self._post(f"{FILTERS}/{id}/reject", FilterOut, {"reason": reason})

    def deploy(self, id: str, target: str = "engine") -> DeploymentOut:
        return self._post(f"{FILTERS}/{id}/deploy", DeploymentOut, {"target": target})

    def rollback(
        self, id: str, to_version: int | None = None, running: int | None = None
    ) -> DeploymentOut:
        """Back to a version that was live; StaleError when another one runs than `running`."""
        body = {"toVersion": to_version, "runningVersion": running}
        return self._post(f"{FILTERS}/{id}/rollback", DeploymentOut, body)

    def pause(self, id: str) -> DeploymentOut:
        return self._post(f"{FILTERS}/{id}/pause", DeploymentOut)

    def resume(self, id: str) -> DeploymentOut:
        return self._post(f"{FILTERS}/{id}/resume", DeploymentOut)

    def status(self, id: str) -> StatusOut:
        return self._get(f"{FILTERS}/{id}/status", StatusOut)

    def revisions(self, id: str) -> RevisionList:
        return self._get(f"{FILTERS}/{id}/revisions", RevisionList)

    def diff(self, id: str, before: int, after: int) -> DiffOut:
        return self._get(f"{FILTERS}/{id}/diff", DiffOut, {"before": before, "after": after})

    def ledger(self, id: str) -> LedgerOut:
        return self._get(f"{FILTERS}/{id}/ledger", LedgerOut)

    # Operations and what happens

    def operation(self, id: str) -> OperationOut:
        return self._get(f"/api/v1/operations/{id}", OperationOut)

    def wait(
        self,
        operation: OperationOut,
        seconds: float,
        seen: Callable[[OperationOut], None] = lambda operation: None,
    ) -> OperationOut:
        """The operation once it has ended, or as it stands after these seconds."""
        until = time.monotonic() + seconds
        while not operation.state.ended and time.monotonic() < until:
            time.sleep(LOOK_EVERY)
            operation = self.operation(operation.id)
            seen(operation)
        return operation

    def audit(self, after: int = 0, limit: int = 100) -> AuditList:
        return self._get("/api/v1/audit", AuditList, {"after": after, "limit": limit})

    def drift(self) -> DriftList:
        """Filters on which git and the ops store disagree."""
        return self._get("/api/v1/drift", DriftList)

    def mend_drift(self, side: str, filters: Sequence[str] = ()) -> MendOut:
        """Change one side, `git` or `store`; the other one is right."""
        body = {"side": side, "filters": list(filters)}
        return self._post("/api/v1/drift:mend", MendOut, body)

    def events(self, after: int | None = None, seconds: float | None = None) -> Iterator[Happened]:
        """What happens from now on, or after this entry; a broken line is taken up again."""
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            for event in self._events(after, until):
                after = event.seq
                yield event

    def _events(self, after: int | None, until: float | None) -> Iterator[Happened]:
        left = None if until is None else max(until - time.monotonic(), 0.1)
        params = {"for": left} if left is not None else {}
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        try:
            with self._http.stream(
                "GET", "/api/v1/events/stream", params=params, headers=headers
            ) as answer:
                if answer.status_code != 200:
                    answer.read()
                    raise error_of(_problem(answer))
                for line in answer.iter_lines():
                    if line.startswith("data: "):
                        yield Happened.model_validate_json(line.removeprefix("data: "))
        except httpx.TransportError as error:
            raise self._away(error) from error

    # The wire

    def _get(self, path: str, model: type[Model], asked: Mapping[str, Any] | None = None) -> Model:
        params = {name: value for name, value in (asked or {}).items() if value is not None}
        return _read(self._ask("GET", path, params=params), model)

    def _post(self, path: str, model: type[Model], body: Mapping[str, Any] | None = None) -> Model:
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        return _read(self._ask("POST", path, body=body or {}, headers=headers), model)

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        request = self._http.build_request(
            method, path, json=body, headers=headers, params=params or None
        )
        answer = self._sent(request, TRIES if method in ("GET", "POST") else 1)
        if answer.is_error:
            raise error_of(_problem(answer))
        return answer

    def _sent(self, request: httpx.Request, tries: int) -> httpx.Response:
        """The answer; a line that broke is tried again, a server that is not there is not."""
        try:
            return self._http.send(request)
        except httpx.TransportError as error:
            if tries > 1 and not isinstance(error, httpx.ConnectError):
                return self._sent(request, tries - 1)
            raise self._away(error) from error

    def _away(self, error: httpx.TransportError) -> UnavailableError:
        return UnavailableError(
            f"{self._url} does not answer",
            why=str(error) or type(error).__name__,
            fix="start it with: headgate serve; or set HEADGATE_API_URL",
        )


def _read(answer: httpx.Response, model: type[Model]) -> Model:
    try:
        return model.model_validate_json(answer.content)
    except ValidationError as error:
        raise UnavailableError(
            "the server's answer is not ours",
            why=f"{answer.request.url.host} answered {answer.status_code} with something else",
            fix="check HEADGATE_API_URL",
        ) from error


def _problem(answer: httpx.Response) -> Problem:
    try:
        return Problem.model_validate(json.loads(answer.content))
    except (ValueError, ValidationError):
        words = f"the server answered {answer.status_code}"
        return Problem(type="", title=words, status=answer.status_code, detail=words, code="")
