"""A store of the release before: what was live, and what was approved, is known after the upgrade."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy import create_engine, text

from headgate.store import database
from headgate.store.ops import OpsStore

AT = "2026-01-01T00:00:00.000000+00:00"
FILTER = {
    "id": "one",
    "version": 3,
    "revision": "r1",
    "status": "deployed",
    "document": "{}",
    "consumer": "c",
    "author": "ann",
    "created_at": AT,
    "updated_at": AT,
    "paused": False,
    "target": "engine",
    "statement_ids": "[]",
}


def _insert(db: object, table: str, row: dict[str, object]) -> None:
    names = ", ".join(f'"{name}"' for name in row)
    values = ", ".join(f":{name}" for name in row)
    db.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)  # pyright: ignore


def test_an_older_store_keeps_what_was_live_and_approved(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ops.db'}"
    from alembic import command
    from alembic.config import Config

    engine = create_engine(url)
    config = Config()
    config.set_main_option("script_location", str(database.MIGRATIONS))
    with engine.begin() as db:
        config.attributes["connection"] = db
        command.upgrade(config, "0010")
        _insert(db, "filters", FILTER)
        notes = {1: "", 2: "", 3: "rollback to version 1", 4: "rollback to version 3"}
        for number, note in notes.items():
            version = {"filter_id": "one", "version": number, "revision": f"r{number}"}
            rest = {"document": "{}", "author": "ann", "authors": '["ann"]', "written_at": AT}
            _insert(db, "filter_versions", {**version, **rest, "sql_hash": "h", "note": note})
        for number, (kind, state) in enumerate(
            [("deploy", "succeeded"), ("deploy", "failed"), ("rollback", "succeeded")], start=1
        ):
            row = {"id": f"o{number}", "kind": kind, "filter_id": "one", "version": number}
            row |= {"revision": "r", "target": "engine", "state": state, "by": "ann", "at": AT}
            row |= {"deadline": AT, "statement_ids": "[]", "automatic": False}
            _insert(db, "operations", {**row, "paused_before": False})
        approval = {"id": "a", "filter_id": "one", "version": 1, "bound": "b", "by": "bob"}
        rest = {"decision": "approved", "comment": "", "at": AT, "expires_at": AT, "void": ""}
        _insert(db, "approvals", {**approval, **rest})
    engine.dispose()
    with OpsStore.open(url) as store:
        with store.control.change() as change:
            assert {one.version for one in change.live_versions("one")} == {1, 3}
            (approved,) = change.approvals("one")
            assert approved.bounds == {"engine": "b"}
            assert [one.restores for one in change.versions("one")] == [None, None, 1, 1]
            record = change.filter("one")
        assert record is not None
        assert record.written_at is not None
        assert json.loads("null") is record.since
