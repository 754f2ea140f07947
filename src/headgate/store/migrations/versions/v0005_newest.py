"""The greatest event time of a job by index: it is asked for after every batch."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index("windows_by_newest", "windows", ["job", "newest"])
