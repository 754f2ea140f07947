"""The greatest event time of a job by index: it is asked for after every batch."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index("windows_by_newest", "windows", ["job", "newest"])
    # A row from the future no longer says how far event time has come.
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    ahead = sa.text("UPDATE windows SET newest = NULL WHERE newest > :now")
    op.execute(ahead.bindparams(now=now))
