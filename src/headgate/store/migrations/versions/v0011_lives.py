"""Which versions of a filter were live, what approvals cover, and where a deployment begins to read."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME, TIME = sa.String(200), sa.String(32)
ROLLED_BACK = "rollback to version "


def upgrade() -> None:
    op.create_table(
        "live_versions",
        sa.Column("id", ROW_ID, primary_key=True),
        sa.Column("filter_id", NAME, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("withdrawn", sa.Text(), nullable=False),
    )
    op.create_index("live_versions_by_filter", "live_versions", ["filter_id", "id"])
    op.add_column("filter_versions", sa.Column("restores", sa.Integer()))
    op.add_column("filters", sa.Column("written_at", TIME))
    op.add_column("filters", sa.Column("since", sa.Text()))
    op.add_column("approvals", sa.Column("bounds", sa.Text(), nullable=False, server_default="{}"))
    op.add_column("wanted_filters", sa.Column("since", sa.Text()))
    _fill(op.get_bind())
    op.drop_column("approvals", "bound")


def _fill(db: sa.Connection) -> None:
    """What the older rows say of it."""
    db.execute(
        sa.text(
            "INSERT INTO live_versions (filter_id, version, at, withdrawn) "
            "SELECT filter_id, version, coalesce(ended_at, at), '' FROM operations "
            "WHERE state = 'succeeded' AND kind IN ('deploy', 'rollback', 'resume') ORDER BY at"
        )
    )
    db.execute(
        sa.text(
            "UPDATE filters SET written_at = (SELECT v.written_at FROM filter_versions v "
            "WHERE v.filter_id = filters.id AND v.version = filters.version)"
        )
    )
    rows = db.execute(sa.text("SELECT filter_id, version, note FROM filter_versions")).all()
    roots: dict[tuple[str, int], int] = {}
    for filter_id, version, note in sorted(rows, key=lambda row: (row[0], row[1])):
        number = note.removeprefix(ROLLED_BACK)
        if note.startswith(ROLLED_BACK) and number.isdecimal():
            root = roots.get((filter_id, int(number)), int(number))
            roots[filter_id, version] = root
            db.execute(
                sa.text(
                    "UPDATE filter_versions SET restores = :root "
                    "WHERE filter_id = :filter_id AND version = :version"
                ),
                {"root": root, "filter_id": filter_id, "version": version},
            )
    for id, bound in db.execute(sa.text("SELECT id, bound FROM approvals")).all():
        bounds = json.dumps({"engine": bound}, separators=(",", ":"))
        db.execute(
            sa.text("UPDATE approvals SET bounds = :bounds WHERE id = :id"),
            {"bounds": bounds, "id": id},
        )
