from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from sqlalchemy import MetaData, create_engine, inspect, text

from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.tables import metadata
from headgate.errors import ConflictError


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'new' / 'ops.db'}"


def test_the_migrated_schema_is_the_one_the_code_uses(url: str) -> None:
    OpsStore.open(url).close()
    engine = create_engine(url)
    stored = MetaData()
    stored.reflect(engine)
    assert set(stored.tables) == {*metadata.tables, "alembic_version"}
    for name, table in metadata.tables.items():
        columns = {
            column["name"]: column["nullable"] for column in inspect(engine).get_columns(name)
        }
        assert columns == {column.name: column.nullable for column in table.columns}
        names = {index["name"] for index in inspect(engine).get_indexes(name)}
        assert names == {index.name for index in table.indexes}
    engine.dispose()


@pytest.mark.parametrize("version", ["0010", "9999"])
def test_a_store_made_by_an_older_or_a_newer_version_is_refused(url: str, version: str) -> None:
    OpsStore.open(url).close()
    engine = create_engine(url)
    with engine.begin() as db:
        db.execute(text("DROP TABLE gauges"))
        db.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})
    with pytest.raises(ConflictError, match="another version of Headgate") as caught:
        OpsStore.open(url)
    assert f"version {version}" in caught.value.why
    assert "OPS_STORE_URL" in caught.value.fix
    assert "gauges" not in inspect(engine).get_table_names(), "a refused store is left as it is"
    engine.dispose()


def write_gauges(url: str, lane: int) -> None:
    with OpsStore.open(url) as store:
        for i in range(20):
            store.write_gauge("lane", f"job-{lane}", i)


def test_processes_may_make_and_use_a_store_at_once(url: str) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        pool.starmap(write_gauges, [(url, lane) for lane in range(4)])
    with OpsStore.open(url) as store:
        assert store.gauges("lane") == {(f"job-{lane}",): 19 for lane in range(4)}
