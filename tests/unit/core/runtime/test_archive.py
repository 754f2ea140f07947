"""The class archive of the engine: what preparing it came to is said as it is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from headgate.cli.main import cli
from headgate.core.runtime import class_archive as archive
from headgate.errors import OperationError

Run = Callable[..., None]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the archive belongs; the jars are there."""
    found = tmp_path / "a cache" / "spark-1.jsa"
    monkeypatch.setattr(archive, "spark_archive", lambda: found)
    monkeypatch.setattr("headgate.core.runtime.bundles.bundle", lambda name: ())
    return found


def succeed(command: list[str], **options: object) -> None:
    Path(command[-1]).write_bytes(b"archive")


def fail(command: list[str], *, stdout, **options: object) -> None:
    stdout.write(b"Traceback\nJAVA_GATEWAY_EXITED\n\n")


def take_too_long(command: list[str], *, timeout: float, **options: object) -> None:
    raise subprocess.TimeoutExpired(command, timeout)


def prepare() -> str:
    done = CliRunner().invoke(cli, ["engine", "prepare"], standalone_mode=False)
    if done.exception:
        raise done.exception
    return done.output.splitlines()[-1]


def test_an_archive_is_made_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", succeed)
    assert prepare() == "✓ the engine starts quicker now"
    assert [file.name for file in place.parent.iterdir() if file.suffix != ".lock"] == [place.name]
    monkeypatch.setattr(subprocess, "run", fail)
    assert prepare() == "✓ the engine was prepared already"


@pytest.mark.parametrize(
    ("run", "why"), [(fail, "JAVA_GATEWAY_EXITED"), (take_too_long, "it took more than 300 s")]
)
def test_a_failed_training_run_is_an_error(
    place: Path, monkeypatch: pytest.MonkeyPatch, run: Run, why: str
) -> None:
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(OperationError, match="not prepared") as caught:
        prepare()
    assert caught.value.why == why
    assert caught.value.fix == f"read {place.with_suffix('.log')}"
    assert not place.exists()


def test_a_java_without_archives_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "spark_archive", lambda: None)
    assert prepare() == "✓ the jars are there; this Java keeps no class archive"
