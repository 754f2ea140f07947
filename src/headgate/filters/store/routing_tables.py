"""The tables of the router: what is wanted, what was seen, the sets, and what each filter judged."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    String,
    Table,
    Text,
    text,
)

from headgate.core.ledger.tables import ROW_ID, Json, Utc, metadata

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
