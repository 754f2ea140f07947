"""Filters: which are wanted, how they stand, the sets that judged, and what each of them judged."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _wanted()
    _seen()
    _sets()
    _counts()
    _owed()


def _wanted() -> None:
    op.create_table(
        "wanted_filters",
        sa.Column("filter", sa.String(200), primary_key=True),
        sa.Column("source", sa.String(249), nullable=False),
        sa.Column("revision", sa.String(64), nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("topic", sa.String(249), nullable=False),
        sa.Column("deployment", sa.String(200), nullable=False),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("backfill", sa.String(20), nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
    )
    op.create_index("wanted_filters_by_source", "wanted_filters", ["source"])
    op.create_table(
        "wanted_changes",
        sa.Column("source", sa.String(249), primary_key=True),
        sa.Column("generation", sa.BigInteger, nullable=False),
    )


def _seen() -> None:
    op.create_table(
        "seen_filters",
        sa.Column("id", ROW_ID, primary_key=True),
        sa.Column("filter", sa.String(200), nullable=False),
        sa.Column("source", sa.String(249), nullable=False),
        sa.Column("source_id", sa.String(200), nullable=False),
        sa.Column("revision", sa.String(64), nullable=False),
        sa.Column("deployment", sa.String(200), nullable=False),
        sa.Column("standing", sa.String(20), nullable=False),
        sa.Column("set_id", sa.String(64), nullable=False),
        sa.Column("cutover", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("newest", sa.Boolean, nullable=False),
    )
    op.create_index("seen_filters_by_filter", "seen_filters", ["filter", "id"])
    newest = sa.text("newest")
    op.create_index(
        "newest_seen_filters",
        "seen_filters",
        ["filter", "source"],
        unique=True,
        sqlite_where=newest,
        postgresql_where=newest,
    )


def _sets() -> None:
    op.create_table(
        "routing_sets",
        sa.Column("set_id", sa.String(64), primary_key=True),
        sa.Column("filter", sa.String(200), primary_key=True),
        sa.Column("revision", sa.String(64), nullable=False),
        sa.Column("topic", sa.String(249), nullable=False),
    )
    op.create_index("routing_sets_by_filter", "routing_sets", ["filter", "set_id"])
    op.create_table(
        "routed_batches",
        sa.Column("ledger", ROW_ID, sa.ForeignKey("ledger.id"), primary_key=True),
        sa.Column("job", sa.String(200), nullable=False),
        sa.Column("set_id", sa.String(64), nullable=False),
    )
    op.create_index("routed_batches_by_set", "routed_batches", ["set_id", "ledger"])


def _counts() -> None:
    op.create_table(
        "routed_counts",
        sa.Column("ledger", ROW_ID, sa.ForeignKey("ledger.id"), primary_key=True),
        sa.Column("filter", sa.String(200), primary_key=True),
        sa.Column("job", sa.String(200), nullable=False),
        sa.Column("revision", sa.String(64), nullable=False),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("refused", sa.BigInteger, nullable=False),
    )
    op.create_index("routed_counts_by_filter", "routed_counts", ["filter", "ledger"])


def _owed() -> None:
    op.create_table(
        "owed_ranges",
        sa.Column("id", ROW_ID, primary_key=True),
        sa.Column("filter", sa.String(200), nullable=False),
        sa.Column("source", sa.String(249), nullable=False),
        sa.Column("source_id", sa.String(200), nullable=False),
        sa.Column("start", sa.Text, nullable=False),
        sa.Column("end", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
    )
    op.create_index("owed_ranges_by_filter", "owed_ranges", ["filter", "state"])
