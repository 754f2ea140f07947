"""Counts per rule, windows of metrics, and how far each sink has sent them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _rule_counts()
    _windows()
    _sinks()


def _rule_counts() -> None:
    op.create_table(
        "rule_counts",
        sa.Column("ledger", ROW_ID, sa.ForeignKey("ledger.id"), primary_key=True),
        sa.Column("rule", sa.String(200), primary_key=True),
        sa.Column("job", sa.String(200), nullable=False),
        sa.Column("metric", sa.String(200), nullable=False),
        sa.Column("severity", sa.String(10), nullable=False),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("held", sa.BigInteger, nullable=False),
    )
    op.create_index("rule_counts_by_job", "rule_counts", ["job", "ledger"])


def _windows() -> None:
    op.create_table(
        "windows",
        sa.Column("job", sa.String(200), primary_key=True),
        sa.Column("window_start", sa.String(32), primary_key=True),
        sa.Column("touched", sa.BigInteger, nullable=False),
        sa.Column("newest", sa.String(32)),
        sa.Column("seen", sa.BigInteger, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64)),
        sa.Column("closing", sa.BigInteger),
        sa.Column("closed_at", sa.String(32)),
        sa.Column("record", sa.Text),
    )
    pending = sa.text("touched > seen")
    op.create_index(
        "windows_pending",
        "windows",
        ["job", "window_start"],
        sqlite_where=pending,
        postgresql_where=pending,
    )
    op.create_index("windows_by_closing", "windows", ["closing"], unique=True)


def _sinks() -> None:
    op.create_table(
        "window_sinks",
        sa.Column("sink", sa.String(50), primary_key=True),
        sa.Column("job", sa.String(200), primary_key=True),
        sa.Column("window_start", sa.String(32), primary_key=True),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("metrics", sa.Text, nullable=False),
        sa.Column("sent_at", sa.String(32), nullable=False),
    )
    op.create_table(
        "sinks",
        sa.Column("name", sa.String(50), primary_key=True),
        sa.Column("closing", sa.BigInteger, nullable=False),
        sa.Column("since", sa.String(32), nullable=False),
        sa.Column("sent_at", sa.String(32)),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("trouble", sa.Text),
    )
