"""A client of schema registries with the Confluent API, and the wire format of values that name a schema.

A framed value is a zero byte, the schema's id in four bytes, the value. A schema never changes under its id, so
it is fetched once. Requests are repeated while the registry is away; the password in its URL appears in no
message.
"""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from urllib.parse import quote, urlsplit, urlunsplit

from headgate.core.runtime.http import send_json
from headgate.errors import ConflictError, ForbiddenError, OperationError, UnavailableError

if TYPE_CHECKING:
    from httpx import Response

MAGIC = 0
BYTES = 5
LARGEST_ID = 2**31 - 1
_HEAD = struct.Struct(">bi")

NOT_FRAMED = "not_framed"
UNKNOWN_SCHEMA = "unknown_schema"
NOT_OF_SCHEMA = "not_of_schema"
REASONS = {
    NOT_FRAMED: "the value has no schema registry's frame",
    UNKNOWN_SCHEMA: "the registry knows no schema of the value's id",
    NOT_OF_SCHEMA: "the value does not fit its schema",
}


class UnreadableError(ValueError):
    """A value that cannot be read: a dead letter with this reason's code, and words without the value."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(f"{REASONS[code]}: {why}")
        self.code = code
        self.why = why


@dataclass(frozen=True)
class Framed:
    """A value and the id of the schema that it was written by."""

    schema_id: int
    payload: bytes


def framed(schema_id: int, payload: bytes) -> bytes:
    """The value as it is sent."""
    if not 0 <= schema_id <= LARGEST_ID:
        raise ValueError(f"{schema_id} is no schema id")
    return _HEAD.pack(MAGIC, schema_id) + payload


def unframed(value: bytes) -> Framed:
    """What a value carries; an UnreadableError when it is too short or begins otherwise."""
    if len(value) < BYTES:
        raise UnreadableError(NOT_FRAMED, f"it has {len(value)} bytes, a frame has {BYTES}")
    magic, schema_id = _HEAD.unpack_from(value)
    if magic != MAGIC:
        raise UnreadableError(NOT_FRAMED, f"its first byte is {magic & 255}, not {MAGIC}")
    if schema_id < 0:
        raise UnreadableError(NOT_FRAMED, "its id is negative")
    return Framed(schema_id, value[BYTES:])


Kind = Literal["AVRO", "JSON"]
Json: TypeAlias = Any  # answers have no closed shape

TRIES = 4
FIRST_PAUSE = 0.2
NOT_FOUND, CONFLICT, BUSY = 404, 409, 429
_CONTENT = "application/vnd.schemaregistry.v1+json"
_COMPATIBILITIES = (
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE",
)  # fmt: skip


@dataclass(frozen=True)
class Schema:
    """A schema's text and language; the registry's answer leaves the language out for Avro."""

    text: str
    kind: Kind = "AVRO"


@dataclass(frozen=True)
class Version:
    """A schema under a subject."""

    subject: str
    version: int
    id: int
    schema: Schema


class RegistryClient:
    """One registry. What has an id never changes, so it is asked for once and kept."""

    def __init__(
        self, url: str, timeout: float = 5.0, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._url, self._authorization = _without_password(url.rstrip("/"))
        self._timeout, self._pause = timeout, pause
        self._by_id: dict[int, Schema] = {}
        self._ids: dict[tuple[str, Schema], int] = {}

    def subjects(self) -> tuple[str, ...]:
        return tuple(sorted(self._ask("GET", "/subjects")))

    def versions(self, subject: str) -> tuple[int, ...]:
        """The versions of a subject; none when there is no such subject."""
        found = self._ask("GET", f"/subjects/{_quoted(subject)}/versions", missing=[])
        return tuple(int(version) for version in found)

    def latest(self, subject: str) -> Version | None:
        """The newest version of a subject; None when there is no such subject."""
        found = self._ask("GET", f"/subjects/{_quoted(subject)}/versions/latest", missing=None)
        if found is None:
            return None
        schema = _schema(found)
        self._by_id[int(found["id"])] = schema
        return Version(found["subject"], int(found["version"]), int(found["id"]), schema)

    def schema(self, schema_id: int) -> Schema | None:
        """The schema of an id; None when the registry knows none, which is asked again next time."""
        if schema_id not in self._by_id:
            found = self._ask("GET", f"/schemas/ids/{schema_id}", missing=None)
            if found is None:
                return None
            self._by_id[schema_id] = _schema(found)
        return self._by_id[schema_id]

    def register(self, subject: str, schema: Schema) -> int:
        """The schema's id under this subject; a ConflictError when it breaks compatibility."""
        known = self._ids.get((subject, schema))
        if known is not None:
            return known
        path = f"/subjects/{_quoted(subject)}/versions"
        found = self._ask("POST", path, _body(schema), subject=subject)
        self._by_id[int(found["id"])] = schema
        self._ids[subject, schema] = int(found["id"])
        return int(found["id"])

    def compatible(self, subject: str, schema: Schema) -> bool:
        """Whether readers of the subject could go on with this schema; any is, where there is none."""
        path = f"/compatibility/subjects/{_quoted(subject)}/versions/latest"
        found = self._ask("POST", path, _body(schema), missing={"is_compatible": True})
        return bool(found["is_compatible"])

    def compatibility(self, subject: str = "") -> str:
        """How versions must fit, of a subject or of all that have no rule of their own."""
        whole = self._ask("GET", "/config")["compatibilityLevel"]
        if not subject:
            return str(whole)
        own = self._ask("GET", f"/config/{_quoted(subject)}", missing=None)
        return str(own["compatibilityLevel"] if own else whole)

    def set_compatibility(self, level: str, subject: str = "") -> None:
        if level not in _COMPATIBILITIES:
            raise OperationError(
                f"`{level}` is no compatibility", fix=f"use one of {', '.join(_COMPATIBILITIES)}"
            )
        path = f"/config/{_quoted(subject)}" if subject else "/config"
        self._ask("PUT", path, {"compatibility": level})

    def _ask(
        self,
        verb: str,
        path: str,
        body: object = None,
        *,
        missing: object = ...,
        subject: str = "",
    ) -> Json:
        """One request, repeated with longer and longer pauses while the registry is away.

        Where nothing is found, `missing` is the answer; `subject` is the one that a new version may not fit.
        """
        for attempt in range(TRIES - 1):
            try:
                return self._once(verb, path, body, missing, subject)
            except UnavailableError:
                self._pause(FIRST_PAUSE * 2**attempt)
        return self._once(verb, path, body, missing, subject)

    def _once(self, verb: str, path: str, body: object, missing: object, subject: str) -> Json:
        try:
            url = f"{self._url}{path}"
            answer = send_json(verb, url, self._timeout, body, _CONTENT, self._authorization)
            if answer.is_success:
                return answer.json()
        except (OSError, ValueError) as error:
            raise self._away(str(error)) from None
        if answer.status_code == NOT_FOUND and missing is not ...:
            return missing
        if answer.status_code == CONFLICT and subject:
            raise _incompatible(subject, answer)
        raise self._refused(answer)

    def _refused(self, answer: Response) -> Exception:
        if answer.status_code in (401, 403):
            return ForbiddenError(
                "the schema registry does not let us in",
                why=f"{self._url}: {_said(answer)}",
                fix="put user and password into SCHEMA_REGISTRY_URL: http://user:password@host",
            )
        if answer.status_code >= 500 or answer.status_code == BUSY:
            return self._away(answer.reason_phrase)
        return OperationError(
            "the schema registry refused the request",
            why=_said(answer),
            fix="correct the schema or the subject; headgate local logs --service registry",
        )

    def _away(self, why: str) -> UnavailableError:
        return UnavailableError(
            "the schema registry does not answer",
            why=f"{self._url}: {why}, {TRIES} times",
            fix="headgate local up --with registry, or set SCHEMA_REGISTRY_URL",
        )


def _incompatible(subject: str, answer: Response) -> ConflictError:
    return ConflictError(
        f"the schema does not fit the versions of {subject}",
        why=_said(answer),
        fix="keep old fields readable, for instance by a default for each new one",
    )


def _without_password(url: str) -> tuple[str, dict[str, str]]:
    """The address without user and password, which go into a header and into no message."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    token = base64.b64encode(user.encode()).decode("ascii")
    return urlunsplit(parts._replace(netloc=host)), {"Authorization": f"Basic {token}"}


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _said(answer: Response) -> str:
    """The registry's own words, where it has any."""
    try:
        words = str(cast("dict[str, object]", answer.json()).get("message") or "")
    except (ValueError, AttributeError):
        words = ""
    return f"{answer.status_code} {words or answer.reason_phrase}"


def _body(schema: Schema) -> dict[str, str]:
    return {"schema": schema.text, "schemaType": schema.kind}


def _schema(found: Json) -> Schema:
    kind, references = found.get("schemaType") or "AVRO", found.get("references")
    if kind not in ("AVRO", "JSON"):
        raise OperationError(
            f"schemas in {kind} are not read here", fix="use Avro or JSON Schema for this topic"
        )
    if references:
        raise OperationError(
            "a schema that refers to others is not read here", fix="write it out in one piece"
        )
    return Schema(found["schema"], kind)
