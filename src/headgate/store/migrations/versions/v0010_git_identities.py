"""Whose each identity of git is: mail addresses and names, with the person behind them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "git_identities",
        sa.Column("identity", sa.String(200), primary_key=True),
        sa.Column("name", sa.String(200), nullable=False),
    )
