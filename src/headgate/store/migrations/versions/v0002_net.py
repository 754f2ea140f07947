"""The ledger: how many rows a batch added on balance, where its outcomes do not tell."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("ledger", sa.Column("net", sa.BigInteger, nullable=False, server_default="0"))
