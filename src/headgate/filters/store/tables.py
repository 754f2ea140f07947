"""Tables of filters in the ops store: control plane and router."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    TypeDecorator,
    text,
)

from headgate.core.ledger.tables import ROW_ID, Json, Utc, metadata


class Document(TypeDecorator[Any]):
    """A declared document as JSON in plain ASCII: whole numbers of any size, every character."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str:
        return json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        return None if value is None else json.loads(value)


filters = Table(
    "filters",
    metadata,
    Column("id", String(200), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("revision", String(64), nullable=False),
    Column("status", String(20), nullable=False),
    Column("document", Document, nullable=False),
    Column("consumer", String(300), nullable=False, index=True),
    Column("author", String(200), nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("updated_at", Utc, nullable=False),
    Column("approved_by", String(200)),
    Column("approved_at", Utc),
    Column("deployed_at", Utc),
    Column("deployed_version", Integer),
    Column("deployed_revision", String(64)),
    Column("deployment_error", Text),
    Column("paused", Boolean, nullable=False),
    Column("target", String(50), nullable=False),
    Column("statement_ids", Json, nullable=False),
    Column("wanted_version", Integer),
    Column("wanted_deployment", String(64)),
    Column("accepted_version", Integer),
    Column("former_status", String(20)),
    Column("asked_by", String(200)),
    Column("written_at", Utc),
    Column("since", Json),
)

filter_versions = Table(
    "filter_versions",
    metadata,
    Column("filter_id", String(200), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("revision", String(64), nullable=False),
    Column("document", Document, nullable=False),
    Column("author", String(200), nullable=False),
    Column("authors", Json, nullable=False),
    Column("written_at", Utc, nullable=False),
    Column("sql_hash", String(64), nullable=False),
    Column("note", Text, nullable=False),
    Column("restores", Integer),
)

approvals = Table(
    "approvals",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("filter_id", String(200), nullable=False),
    Column("version", Integer, nullable=False),
    Column("decision", String(20), nullable=False),
    Column("by", String(200), nullable=False),
    Column("comment", Text, nullable=False),
    Column("at", Utc, nullable=False),
    Column("expires_at", Utc, nullable=False),
    Column("void", Text, nullable=False),
    Column("bounds", Json, nullable=False),
)
Index("approvals_by_filter", approvals.c.filter_id, approvals.c.version)

# Each time a version went live; `withdrawn` says who rolled back from it, and it is no way back then.
live_versions = Table(
    "live_versions",
    metadata,
    Column("id", ROW_ID, primary_key=True),
    Column("filter_id", String(200), nullable=False),
    Column("version", Integer, nullable=False),
    Column("at", Utc, nullable=False),
    Column("withdrawn", Text, nullable=False),
)
Index("live_versions_by_filter", live_versions.c.filter_id, live_versions.c.id)

operations = Table(
    "operations",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("filter_id", String(200), nullable=False),
    Column("version", Integer, nullable=False),
    Column("revision", String(64), nullable=False),
    Column("target", String(50), nullable=False),
    Column("state", String(20), nullable=False),
    Column("by", String(200), nullable=False),
    Column("at", Utc, nullable=False),
    Column("deadline", Utc, nullable=False),
    Column("ended_at", Utc),
    Column("error", Text),
    Column("statement_ids", Json, nullable=False),
    Column("automatic", Boolean, nullable=False),
    Column("paused_before", Boolean, nullable=False),
)
Index("operations_by_filter", operations.c.filter_id, operations.c.at)
_RUNNING = text("state = 'running'")
Index(
    "one_running_operation",
    operations.c.filter_id,
    unique=True,
    sqlite_where=_RUNNING,
    postgresql_where=_RUNNING,
)

git_errands = Table(
    "git_errands",
    metadata,
    Column("id", ROW_ID, primary_key=True),
    Column("filter_id", String(200), nullable=False),
    Column("text", Text),
    Column("author", String(200), nullable=False),
    Column("message", Text, nullable=False),
    Column("at", Utc, nullable=False),
    Column("commit", String(64), index=True),
    Column("trouble", Text, nullable=False),
)

wanted_filters = Table(
    "wanted_filters",
    metadata,
    Column("filter", String(200), primary_key=True),
    Column("source", String(249), nullable=False),
    Column("revision", String(64), nullable=False),
    Column("content", Text, nullable=False),
    Column("topic", String(249), nullable=False),
    Column("deployment", String(200), nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("backfill", String(20), nullable=False),
    Column("at", Utc, nullable=False),
    Column("since", Json),
)
Index("wanted_filters_by_source", wanted_filters.c.source)

# Rises with each change of what is wanted of a source: a router looks at this alone between batches.
wanted_changes = Table(
    "wanted_changes",
    metadata,
    Column("source", String(249), primary_key=True),
    Column("generation", BigInteger, nullable=False),
)

# Every standing that a filter ever had; the one it has now on its source is marked. A filter that is
# moved to another source stands on both for a while, since each router speaks for itself.
seen_filters = Table(
    "seen_filters",
    metadata,
    Column("id", ROW_ID, primary_key=True),
    Column("filter", String(200), nullable=False),
    Column("source", String(249), nullable=False),
    Column("source_id", String(200), nullable=False),
    Column("revision", String(64), nullable=False),
    Column("deployment", String(200), nullable=False),
    Column("standing", String(20), nullable=False),
    Column("set_id", String(64), nullable=False),
    Column("cutover", Json, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Utc, nullable=False),
    Column("newest", Boolean, nullable=False),
)
Index("seen_filters_by_filter", seen_filters.c.filter, seen_filters.c.id)
_NEWEST = text("newest")
Index(
    "newest_seen_filters",
    seen_filters.c.filter,
    seen_filters.c.source,
    unique=True,
    sqlite_where=_NEWEST,
    postgresql_where=_NEWEST,
)

routing_sets = Table(
    "routing_sets",
    metadata,
    Column("set_id", String(64), primary_key=True),
    Column("filter", String(200), primary_key=True),
    Column("revision", String(64), nullable=False),
    Column("topic", String(249), nullable=False),
)
Index("routing_sets_by_filter", routing_sets.c.filter, routing_sets.c.set_id)

# Which set judged a batch: with its pieces, which offsets each filter of the set has judged.
routed_batches = Table(
    "routed_batches",
    metadata,
    Column("ledger", ROW_ID, ForeignKey("ledger.id"), primary_key=True),
    Column("job", String(200), nullable=False),
    Column("set_id", String(64), nullable=False),
)
Index("routed_batches_by_set", routed_batches.c.set_id, routed_batches.c.ledger)

routed_counts = Table(
    "routed_counts",
    metadata,
    Column("ledger", ROW_ID, ForeignKey("ledger.id"), primary_key=True),
    Column("filter", String(200), primary_key=True),
    Column("job", String(200), nullable=False),
    Column("revision", String(64), nullable=False),
    Column("n", BigInteger, nullable=False),
    Column("refused", BigInteger, nullable=False),
)
Index("routed_counts_by_filter", routed_counts.c.filter, routed_counts.c.ledger)

owed_ranges = Table(
    "owed_ranges",
    metadata,
    Column("id", ROW_ID, primary_key=True),
    Column("filter", String(200), nullable=False),
    Column("source", String(249), nullable=False),
    Column("source_id", String(200), nullable=False),
    Column("start", Json, nullable=False),
    Column("end", Json, nullable=False),
    Column("state", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Utc, nullable=False),
)
Index("owed_ranges_by_filter", owed_ranges.c.filter, owed_ranges.c.state)
