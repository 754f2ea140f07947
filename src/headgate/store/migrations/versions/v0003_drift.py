"""Drift: per batch, which fields deviated from the declaration, and in how many records."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "drift",
        sa.Column("job", sa.String(200), primary_key=True),
        sa.Column("source_id", sa.String(200), primary_key=True),
        sa.Column("start", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(20), primary_key=True),
        sa.Column("field", sa.String(200), primary_key=True),
        sa.Column("records", sa.BigInteger, nullable=False),
        sa.Column("batch_time", sa.String(32), nullable=False),
    )
