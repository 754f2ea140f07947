"""The hadoop catalog is for one writer: it works for that one, and a second is refused."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.dataset_events import events
from tests.support.pipeline import Pipeline

from headgate.core.engine.host import ENGINE_FILE, only_writer
from headgate.core.ledger.ops_store import OpsStore
from headgate.local.process import wait_until

SECONDS = 180


@pytest.fixture
def hadoop(pipeline: Pipeline, tmp_path: Path) -> Pipeline:
    """The same dataset on a hadoop catalog, in a home of its own."""
    return elsewhere(pipeline, tmp_path / "home", tmp_path / "warehouse")


def elsewhere(pipeline: Pipeline, home: Path, warehouse: Path) -> Pipeline:
    home.mkdir()
    changes = {
        "catalog": "hadoop",
        "warehouse": str(warehouse),
        "home": home,
        "ops_store_url": f"sqlite:///{home}/ops.db",
    }
    settings = pipeline.settings.model_copy(update=changes)
    return replace(pipeline, settings=settings, store=OpsStore.open(settings.ops_store_url))


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, talk = process.communicate(timeout=SECONDS)
    return process.returncode, said + talk


def test_a_second_writer_is_refused(hadoop: Pipeline) -> None:
    with only_writer(hadoop.settings):
        code, words = ended(hadoop.command("job", "run", "bronze"))
    assert code == 6, words
    assert "another process writes to this warehouse" in words
    assert "use CATALOG=jdbc or rest" in words


@contextmanager
def engine(pipeline: Pipeline) -> Iterator[subprocess.Popen[str]]:
    process = pipeline.command("engine", "run")
    announced = pipeline.settings.home / ENGINE_FILE
    try:
        assert wait_until(lambda: announced.exists() or process.poll() is not None, SECONDS)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=SECONDS)


@pytest.mark.slow
def test_bronze_silver_maintenance_and_the_certificate_work(
    hadoop: Pipeline, pipeline: Pipeline, tmp_path: Path
) -> None:
    second = elsewhere(pipeline, tmp_path / "second", Path(hadoop.settings.warehouse))
    with engine(hadoop) as first:
        assert first.poll() is None
        for number in range(3):
            hadoop.produce([*events(number, 20, number * 20, days=2), b"not a record"])
            for kind in ("bronze", "silver"):
                code, words = ended(hadoop.command("job", "run", kind))
                assert code == 0, words
        # Another engine with another ops store knows nothing of the first one's lease.
        code, words = ended(second.command("engine", "run"))
        assert code == 6, words
        code, words = ended(second.command("job", "run", "bronze"))
        assert code == 6, words
        before, rows = files(hadoop), hadoop.silver()
        code, words = ended(hadoop.command("maintain", "compact", "--min-files", "2"))
        assert code == 0, words
        assert "small files in 3 parts" in words
        assert files(hadoop) < before
        assert hadoop.silver() == rows
        code, words = ended(hadoop.command("maintain", "all", "--yes"))
        assert code == 0, words
        code, words = ended(hadoop.command("certify"))
        assert code == 0, words
    assert hadoop.silver() == rows
    assert hadoop.certify().holds


def files(pipeline: Pipeline) -> int:
    """Data files of silver's current snapshot."""
    from headgate.core.lake.duckdb_reader import Lake

    with Lake.open(pipeline.settings) as lake:
        found = lake.snapshots(f"silver.{pipeline.name}")
    newest = max((s for s in found if s.in_history), key=lambda s: s.timestamp)
    return int(newest.summary["total-data-files"])
