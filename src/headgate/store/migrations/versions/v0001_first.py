"""Leases, runs, intents, ledger, revisions and marks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.String(32)


def upgrade() -> None:
    _leases_and_runs()
    _intents()
    _ledger()
    _revisions_and_marks()


def _leases_and_runs() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("holder", sa.String(200), nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("job", sa.String(200), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(50), nullable=False),
        sa.Column("subject", sa.String(200), nullable=False),
        sa.Column("mode", sa.String(20), nullable=False),
        sa.Column("revision", sa.String(64), nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("restarts", sa.Integer, nullable=False),
        sa.Column("submitted_at", TIME, nullable=False, index=True),
        sa.Column("started_at", TIME),
        sa.Column("ended_at", TIME),
        sa.Column("error_code", sa.String(20)),
        sa.Column("error_text", sa.Text),
        sa.Column("progress", sa.Text, nullable=False),
        sa.Column("stop_requested", sa.Boolean, nullable=False),
        sa.Column("engine", sa.String(200)),
    )
    active = sa.text("state IN ('SUBMITTED', 'RUNNING')")
    op.create_index(
        "one_active_run",
        "runs",
        ["job"],
        unique=True,
        sqlite_where=active,
        postgresql_where=active,
    )


def _intents() -> None:
    op.create_table(
        "intents",
        sa.Column("id", ROW_ID, primary_key=True),
        sa.Column("job", sa.String(200), nullable=False),
        sa.Column("run", sa.Integer, nullable=False),
        sa.Column("source", sa.String(400), nullable=False),
        sa.Column("source_id", sa.String(200), nullable=False),
        sa.Column("start", sa.Text, nullable=False),
        sa.Column("end", sa.Text, nullable=False),
        sa.Column("revisions", sa.Text, nullable=False),
        sa.Column("batch_time", TIME, nullable=False),
        sa.Column("batch_id", sa.BigInteger, nullable=False),
        sa.Column("amends", ROW_ID, sa.ForeignKey("intents.id")),
        sa.Column("state", sa.String(20), nullable=False),
    )
    op.create_index("intents_by_start", "intents", ["job", "state", "start"])
    still_open = sa.text("state = 'open'")
    op.create_index(
        "one_open_intent",
        "intents",
        ["job", "source", "source_id", "start"],
        unique=True,
        sqlite_where=still_open,
        postgresql_where=still_open,
    )


def _ledger() -> None:
    op.create_table(
        "ledger",
        sa.Column("id", ROW_ID, primary_key=True),
        sa.Column("intent", ROW_ID, sa.ForeignKey("intents.id"), nullable=False, unique=True),
        sa.Column("job", sa.String(200), nullable=False),
        sa.Column("run", sa.Integer, nullable=False),
        sa.Column("source", sa.String(400), nullable=False),
        sa.Column("source_id", sa.String(200), nullable=False),
        sa.Column("start", sa.Text, nullable=False),
        sa.Column("end", sa.Text, nullable=False),
        sa.Column("revisions", sa.Text, nullable=False),
        sa.Column("batch_time", TIME, nullable=False),
        sa.Column("batch_id", sa.BigInteger, nullable=False),
        sa.Column("read", sa.BigInteger, nullable=False),
        sa.Column("span", sa.BigInteger, nullable=False),
        sa.Column("gaps", sa.BigInteger, nullable=False),
        sa.Column("outcomes", sa.Text, nullable=False),
        sa.Column("snapshots", sa.Text, nullable=False),
        sa.Column("committed_at", TIME, nullable=False),
        sa.Column("rebuilt", sa.Boolean, nullable=False),
    )
    op.create_index("ledger_by_job", "ledger", ["job", "committed_at"])
    op.create_table(
        "pieces",
        sa.Column("ledger", ROW_ID, sa.ForeignKey("ledger.id"), primary_key=True),
        sa.Column("partition", sa.String(20), primary_key=True),
        sa.Column("job", sa.String(200), nullable=False),
        sa.Column("source", sa.String(400), nullable=False),
        sa.Column("source_id", sa.String(200), nullable=False),
        sa.Column("start", sa.BigInteger, nullable=False),
        sa.Column("end", sa.BigInteger, nullable=False),
    )
    op.create_index("pieces_by_end", "pieces", ["job", "source", "source_id", "partition", "end"])


def _revisions_and_marks() -> None:
    op.create_table(
        "revisions",
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(50), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
    )
    op.create_table(
        "marks",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("at", TIME, nullable=False),
    )
