"""Values that the ops store keeps: runs, intents, ledger rows, leases, revisions; and JSON text as it is stored.

Values only, no database. `canonical` gives equal JSON values equal text (sorted keys, no white space), so
that they compare equal in SQL and have one `fingerprint` (SHA-256).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import orjson
from pydantic import BaseModel, ConfigDict

from headgate.core.ledger.ranges import Range

if TYPE_CHECKING:
    from sqlalchemy import Connection


def canonical(value: object) -> str:
    """The one text of a JSON value: equal values give equal texts."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def parse(text: str) -> Any:
    return orjson.loads(text)


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# The batch id of records that expired unread, and that a person decided to go on without.
ACCEPTED_GAP = -1


class RunState(StrEnum):
    """Where one run of a job stands."""

    SUBMITTED = "SUBMITTED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


ACTIVE = frozenset({RunState.SUBMITTED, RunState.RUNNING})

TRANSITIONS: Mapping[RunState, frozenset[RunState]] = {
    RunState.SUBMITTED: frozenset({RunState.RUNNING, RunState.CANCELED, RunState.FAILED}),
    RunState.RUNNING: frozenset({RunState.FINISHED, RunState.FAILED, RunState.CANCELED}),
    RunState.FINISHED: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.CANCELED: frozenset(),
}


class RunOptions(BaseModel):
    """What a run is asked for beside its revision: a model for each kind of job; this one asks for nothing.

    The ops store keeps the values of the model as JSON; `of` reads them back.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def of(cls, run: Run) -> Self:
        """The options of a run whose kind has this model."""
        return cls.model_validate(run.options)


@dataclass(frozen=True)
class JobSpec:
    """What is asked for: which job, of which kind, on which subject, under which revision."""

    job: str
    kind: str
    subject: str
    mode: str
    revision: str
    options: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    batches: int = 0
    records: int = 0
    total: int | None = None
    rate: float | None = None
    words: str = ""
    outcomes: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Run:
    """One start of one job, numbered upwards; `options` are as stored, and read by the model of its kind.

    `driver_losses` counts how often the driver was lost since the run settled a batch;
    `lost_after_batches` is how many batches it had settled at the last of them.
    """

    job: str
    number: int
    kind: str
    subject: str
    mode: str
    revision: str
    options: Mapping[str, Any]
    state: RunState
    restarts: int
    submitted_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error_code: str | None = None
    error_text: str | None = None
    progress: Progress = field(default_factory=Progress)
    stop_requested: bool = False
    engine: str | None = None
    restarted_at: datetime | None = None
    restart_reason: str | None = None
    driver_losses: int = 0
    lost_after_batches: int | None = None


@dataclass(frozen=True)
class Intent:
    """What a batch is about to do, written before its first output; a replay obeys it."""

    id: int | None
    job: str
    run: int
    range: Range
    revisions: tuple[str, ...]
    batch_time: datetime
    batch_id: int
    amends: int | None = None

    @property
    def is_accepted_gap(self) -> bool:
        """No record is left of its range; a person decided to go on behind it."""
        return self.batch_id == ACCEPTED_GAP


@dataclass(frozen=True)
class LedgerRow:
    """What became of a batch: `read` records, every one of them in exactly one outcome.

    `net` is how many rows its table gained, for a backfill: it writes rows that were there already.
    """

    id: int | None
    job: str
    run: int
    range: Range
    revisions: tuple[str, ...]
    batch_time: datetime
    batch_id: int
    read: int
    span: int
    gaps: int
    outcomes: Mapping[str, int]
    snapshots: Mapping[str, int]
    committed_at: datetime
    rebuilt: bool = False

    @property
    def is_accepted_gap(self) -> bool:
        return self.batch_id == ACCEPTED_GAP

    net: int = 0


class LedgerExtra(Protocol):
    """Rows beside the ledger row of a batch, written in the transaction that settles the batch."""

    def write(self, db: Connection, row: LedgerRow) -> None:
        """Write the rows; `row` has its id. An exception rolls the whole batch back."""
        ...


class DriftKind(StrEnum):
    """How a field of a record deviates from its declaration."""

    UNKNOWN = "unknown"
    MISSING = "missing"
    RETYPED = "retyped"


class FieldDrift(NamedTuple):
    """In how many records of one batch a field deviated."""

    kind: DriftKind
    field: str
    records: int


@dataclass(frozen=True)
class Drifted:
    """A field's deviation over all batches of a job."""

    field: str
    kind: DriftKind
    records: int
    first_seen: datetime
    last_seen: datetime
    batches: int


class RuleCount(NamedTuple):
    """How many rows got their status from a rule, and how many it matched at all."""

    rule: str
    metric: str
    severity: str
    n: int
    matched: int


@dataclass(frozen=True)
class Dimensions:
    """The labels that every metric of a job's rules has, and what its dotted names begin with."""

    env: str
    dc: str
    table: str
    topic: str
    namespace: str = ""


class TouchedWindow(NamedTuple):
    """A window that a batch counted into, and the greatest event time it had there."""

    start: datetime
    newest: datetime | None = None


@dataclass(frozen=True)
class Judged:
    """What a batch of a quality job says beside its outcomes.

    `anew` is for a batch that replaces all rows of its job: earlier windows are looked at again.
    `rows` is how many rows its rules judged, whatever the outcomes are called; `windows_of` the job
    whose windows these are, where it is another's.
    """

    counts: tuple[RuleCount, ...] = ()
    windows: tuple[TouchedWindow, ...] = ()
    anew: bool = False
    rows: int = 0
    windows_of: str = ""


@dataclass(frozen=True)
class Window:
    """A window of a job's metrics; `record` is what was last said of it, under `sequence`."""

    job: str
    window_start: datetime
    touched: int
    newest: datetime | None
    seen: int
    sequence: int
    digest: str | None
    closing: int | None
    closed_at: datetime | None
    record: Mapping[str, Any] | None

    @property
    def is_pending(self) -> bool:
        """A batch counted into it since it was last looked at."""
        return self.touched > self.seen


class Closing(NamedTuple):
    """A window as it was looked at; a record only where there is something new to say."""

    window: Window
    digest: str
    record: Mapping[str, Any] | None


class Unsent(NamedTuple):
    """A closed window that a sink has not sent, and the metrics that it sent of it before."""

    window: Window
    before: Mapping[str, int]


@dataclass(frozen=True)
class SinkState:
    """How far a sink has come: it has sent all closings up to `closing`, and what the batches up to
    the row `ledger` of the ledger have counted."""

    name: str
    closing: int
    since: datetime
    sent_at: datetime | None
    failures: int
    trouble: str | None
    ledger: int


@dataclass(frozen=True)
class Lease:
    """The right to be the active one; `token` rises with each new holder and fences the old."""

    name: str
    holder: str
    token: int
    expires_at: datetime


@dataclass(frozen=True)
class Revision:
    """One immutable version of a declaration, known by the hash of its canonical content."""

    hash: str
    kind: str
    name: str
    content: str
    created_at: datetime
