"""Sinks tell what batches counted, too: those that are there begin with the next batch."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("sinks", sa.Column("ledger", sa.BigInteger, nullable=False, server_default="0"))
    op.execute("UPDATE sinks SET ledger = (SELECT coalesce(max(id), 0) FROM ledger)")
