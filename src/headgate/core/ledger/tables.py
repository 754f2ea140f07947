"""Tables of the ops store that belong to the core, in SQLAlchemy Core, alike on SQLite and PostgreSQL.

`metadata` is the one schema: capabilities add their tables to it. `Json` and `Utc` are the column types
that make values compare and sort equal on both databases.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    text,
)

from headgate.core.ledger.model import canonical, parse

metadata = MetaData()


class Json(TypeDecorator[Any]):
    """Canonical JSON text, so that equal values compare equal in SQL too."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:
        return None if value is None else canonical(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        return None if value is None else parse(value)


class Utc(TypeDecorator[datetime]):
    """A moment as fixed-width UTC text: sorts in time, and reads the same on every database."""

    impl = String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("the ops store takes times with a zone only")
        return value.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


# SQLite numbers rows by itself only for the exact type INTEGER.
ROW_ID = BigInteger().with_variant(Integer(), "sqlite")

leases = Table(
    "leases",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("holder", String(200), nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("expires_at", Utc, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("job", String(200), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(50), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("mode", String(20), nullable=False),
    Column("revision", String(64), nullable=False),
    Column("options", Json, nullable=False),
    Column("state", String(20), nullable=False),
    Column("restarts", Integer, nullable=False),
    Column("submitted_at", Utc, nullable=False, index=True),
    Column("started_at", Utc),
    Column("ended_at", Utc),
    Column("error_code", String(20)),
    Column("error_text", Text),
    Column("progress", Json, nullable=False),
    Column("stop_requested", Boolean, nullable=False),
    Column("engine", String(200)),
    Column("restarted_at", Utc),
    Column("restart_reason", Text),
    Column("driver_losses", Integer, nullable=False),
    Column("lost_after_batches", Integer),
)
_ACTIVE = text("state IN ('SUBMITTED', 'RUNNING')")
Index("one_active_run", runs.c.job, unique=True, sqlite_where=_ACTIVE, postgresql_where=_ACTIVE)

intents = Table(
    "intents",
    metadata,
    Column("id", ROW_ID, primary_key=True),
    Column("job", String(200), nullable=False),
    Column("run", Integer, nullable=False),
    Column("source", String(400), nullable=False),
    Column("source_id", String(200), nullable=False),
    Column("start", Json, nullable=False),
    Column("end", Json, nullable=False),
    Column("revisions", Json, nullable=False),
    Column("batch_time", Utc, nullable=False),
    Column("batch_id", BigInteger, nullable=False),
    Column("amends", ROW_ID, ForeignKey("intents.id")),
    Column("state", String(20), nullable=False),
)
Index("intents_by_start", intents.c.job, intents.c.state, intents.c.start)
_OPEN = text("state = 'open'")
Index(
    "one_open_intent",
    intents.c.job,
    intents.c.source,
    intents.c.source_id,
    intents.c.start,
    unique=True,
    sqlite_where=_OPEN,
    postgresql_where=_OPEN,
)

ledger = Table(
    "ledger",
    metadata,
    Column("id", ROW_ID, primary_key=True),
    Column("intent", ROW_ID, ForeignKey("intents.id"), nullable=False, unique=True),
    Column("job", String(200), nullable=False),
    Column("run", Integer, nullable=False),
    Column("source", String(400), nullable=False),
    Column("source_id", String(200), nullable=False),
    Column("start", Json, nullable=False),
    Column("end", Json, nullable=False),
    Column("revisions", Json, nullable=False),
    Column("batch_time", Utc, nullable=False),
    Column("batch_id", BigInteger, nullable=False),
    Column("read", BigInteger, nullable=False),
    Column("span", BigInteger, nullable=False),
    Column("gaps", BigInteger, nullable=False),
    Column("outcomes", Json, nullable=False),
    Column("snapshots", Json, nullable=False),
    Column("committed_at", Utc, nullable=False),
    Column("rebuilt", Boolean, nullable=False),
    Column("net", BigInteger, nullable=False, server_default="0"),
)
Index("ledger_by_job", ledger.c.job, ledger.c.committed_at)

# One row per partition of a settled topic range: overlaps are found by index.
pieces = Table(
    "pieces",
    metadata,
    Column("ledger", ROW_ID, ForeignKey("ledger.id"), primary_key=True),
    Column("partition", String(20), primary_key=True),
    Column("job", String(200), nullable=False),
    Column("source", String(400), nullable=False),
    Column("source_id", String(200), nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
)
Index(
    "pieces_by_end",
    pieces.c.job,
    pieces.c.source,
    pieces.c.source_id,
    pieces.c.partition,
    pieces.c.end,
)

# A start is a fingerprint here: part of a key, it must not grow with the number of partitions.
drift = Table(
    "drift",
    metadata,
    Column("job", String(200), primary_key=True),
    Column("source_id", String(200), primary_key=True),
    Column("start", String(64), primary_key=True),
    Column("kind", String(20), primary_key=True),
    Column("field", String(200), primary_key=True),
    Column("records", BigInteger, nullable=False),
    Column("batch_time", Utc, nullable=False),
)

revisions = Table(
    "revisions",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("kind", String(50), nullable=False),
    Column("name", String(200), nullable=False),
    Column("content", Text, nullable=False),
    Column("created_at", Utc, nullable=False),
)

# Values that only a running job can measure; `label` is empty where a metric has one value a job.
gauges = Table(
    "gauges",
    metadata,
    Column("metric", String(200), primary_key=True),
    Column("job", String(200), primary_key=True),
    Column("label", String(200), primary_key=True),
    Column("value", Double, nullable=False),
    Column("at", Utc, nullable=False),
)

# The labels that all metrics of a job's rules have.
dimensions = Table(
    "dimensions",
    metadata,
    Column("job", String(200), primary_key=True),
    Column("env", Text, nullable=False),
    Column("dc", Text, nullable=False),
    Column("table", Text, nullable=False),
    Column("topic", Text, nullable=False),
    Column("namespace", Text, nullable=False),
)

# One row: when `local up` last found all services ready.
services_ready = Table(
    "services_ready",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("at", Utc, nullable=False),
)

# Per batch and rule: rows whose status it gave (n), and rows that it matched at all.
rule_counts = Table(
    "rule_counts",
    metadata,
    Column("ledger", ROW_ID, ForeignKey("ledger.id"), primary_key=True),
    Column("rule", String(200), primary_key=True),
    Column("job", String(200), nullable=False),
    Column("metric", String(200), nullable=False),
    Column("severity", String(10), nullable=False),
    Column("n", BigInteger, nullable=False),
    Column("matched", BigInteger, nullable=False),
)
Index("rule_counts_by_job", rule_counts.c.job, rule_counts.c.ledger)

# `touched` is the last batch that counted into a window, `seen` the last one its record knows of.
# `closing` numbers the closings of all windows upwards: a sink has sent all up to its own number.
windows = Table(
    "windows",
    metadata,
    Column("job", String(200), primary_key=True),
    Column("window_start", Utc, primary_key=True),
    Column("touched", BigInteger, nullable=False),
    Column("newest", Utc),
    Column("seen", BigInteger, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("digest", String(64)),
    Column("closing", BigInteger),
    Column("closed_at", Utc),
    Column("record", Json),
)
_PENDING = text("touched > seen")
Index(
    "windows_pending",
    windows.c.job,
    windows.c.window_start,
    sqlite_where=_PENDING,
    postgresql_where=_PENDING,
)
Index("windows_by_closing", windows.c.closing, unique=True)
Index("windows_by_newest", windows.c.job, windows.c.newest)

# Which closing of a window a sink has sent, with the sums it then had.
window_sinks = Table(
    "window_sinks",
    metadata,
    Column("sink", String(50), primary_key=True),
    Column("job", String(200), primary_key=True),
    Column("window_start", Utc, primary_key=True),
    Column("sequence", Integer, nullable=False),
    Column("metrics", Json, nullable=False),
    Column("sent_at", Utc, nullable=False),
)

# `ledger` is the last row of the ledger whose counts the sink has sent.
sinks = Table(
    "sinks",
    metadata,
    Column("name", String(50), primary_key=True),
    Column("closing", BigInteger, nullable=False),
    Column("since", Utc, nullable=False),
    Column("sent_at", Utc),
    Column("failures", Integer, nullable=False),
    Column("trouble", Text),
    Column("ledger", BigInteger, nullable=False, server_default="0"),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Utc, nullable=False),
    Column("actor", String(200), nullable=False),
    Column("action", String(50), nullable=False),
    Column("subject", String(200), nullable=False, index=True),
    Column("detail", Json, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)

# One row: where the chain ends. Entries cut off at its end are missed by nothing else.
audit_head = Table(
    "audit_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("hash", String(200), nullable=False),
    Column("roles", Json, nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("expires_at", Utc),
    Column("revoked_at", Utc),
    Column("last_used_at", Utc),
)

# Whose an identity of git is: a mail address or a name, in one spelling.
git_identities = Table(
    "git_identities",
    metadata,
    Column("identity", String(200), primary_key=True),
    Column("name", String(200), nullable=False),
)

answers = Table(
    "answers",
    metadata,
    Column("actor", String(200), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("request", String(64), nullable=False),
    Column("at", Utc, nullable=False, index=True),
    Column("status", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("headers", Json, nullable=False),
)
