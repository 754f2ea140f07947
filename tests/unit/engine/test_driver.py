"""The driver's JVM is watched: its end is noticed, and told in words that say what to do."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate.engine import session as session_module
from headgate.engine.driver import Driver
from headgate.engine.session import ConnectServer, _submitted_by_file, start_session
from headgate.errors import HeadgateError, SettingsError, UnavailableError
from headgate.settings import Settings

TOKEN = "a-secret-token"


class Process:
    """Stands in for the JVM's process; its exit code is None while it runs."""

    def __init__(self, code: int | None) -> None:
        self.code = code

    def poll(self) -> int | None:
        return self.code

    def wait(self, seconds: float) -> int:
        if self.code is None:
            raise subprocess.TimeoutExpired("java", seconds)
        return self.code


def driver_of(code: int | None, answers: Callable[[], bool]) -> Driver:
    return Driver(cast("Any", Process(code)), answers, "2g")


def refuse() -> bool:
    raise ConnectionRefusedError(111, "Connection refused")


def test_a_driver_that_works_is_not_lost() -> None:
    driver = driver_of(None, lambda: True)
    assert not driver.is_lost()
    assert not driver.has_failed()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-signal.SIGKILL, "was killed by signal 9"),
        (3, "ran out of memory (heap 2g)"),
        (1, "ended with exit code 1"),
        (0, "ended with exit code 0"),
    ],
)
def test_the_end_of_the_process_is_noticed_and_explained(code: int, words: str) -> None:
    driver = driver_of(code, refuse)
    assert driver.is_lost()
    assert driver.has_failed()
    loss = driver.loss()
    assert words in loss.what
    assert loss.why
    assert loss.fix
    assert (loss.exit_code, loss.retryable) == (8, True)


def test_out_of_memory_names_the_setting_to_raise() -> None:
    assert "raise SPARK_DRIVER_MEMORY" in driver_of(3, refuse).loss().fix


@pytest.mark.parametrize("answers", [refuse, lambda: False])
def test_a_driver_that_answers_no_more_is_lost_for_good(answers: Callable[[], bool]) -> None:
    driver = driver_of(None, answers)
    assert not driver.is_lost(), "nobody has called into it yet"
    assert driver.has_failed()
    assert driver.is_lost()
    assert "answers no more" in driver.loss().what


def test_options_go_by_a_file_of_the_owner_alone_and_not_as_arguments(tmp_path: Path) -> None:
    before = os.environ.get("PYSPARK_SUBMIT_ARGS")
    with _submitted_by_file(tmp_path, {"spark.x": TOKEN, "spark.path": "C:\\a b"}):
        arguments = os.environ["PYSPARK_SUBMIT_ARGS"]
        (file,) = tmp_path.iterdir()
        assert TOKEN not in arguments
        assert str(file) in arguments
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.read_text() == f"spark.x={TOKEN}\nspark.path=C:\\\\a b\n"
    assert list(tmp_path.iterdir()) == []
    assert os.environ.get("PYSPARK_SUBMIT_ARGS") == before


class Launched:
    """Stands in for the gateway's launch: keeps the command line that PySpark would start."""

    def __init__(self) -> None:
        self.argv: list[str] = []

    def __call__(self, argv: list[str], **_: object) -> subprocess.Popen[bytes]:
        self.argv = argv
        raise RuntimeError("not started")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Launched:
    launched = Launched()
    monkeypatch.setattr("pyspark.java_gateway.Popen", launched)
    # Tests that ran before in this process may have left a session, which would be taken instead.
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)
    monkeypatch.setattr(session_module, "bundle", lambda _: ())
    # Keys of object storage are options like others; its connector is not needed to see them.
    monkeypatch.setattr(session_module, "check_bundled", lambda _: None)
    return launched


def test_no_secret_stands_in_the_command_line_of_the_jvm(
    tmp_path: Path, launched: Launched
) -> None:
    settings = Settings(
        root=tmp_path,
        home=tmp_path / "home",
        storage="minio",
        warehouse="s3a://lake/warehouse",
        s3_endpoint="http://localhost:9000",
        minio_root_user="an-access-key",
        minio_root_password="a-secret-key",
    )
    with pytest.raises(UnavailableError):
        start_session(settings, ConnectServer(15002, TOKEN), 4040)
    command = " ".join(launched.argv)
    assert "--properties-file" in command
    assert not [word for word in (TOKEN, "an-access-key", "a-secret-key") if word in command]


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (
            "An error occurred while calling None.JavaSparkContext.\n"
            ": org.apache.spark.SparkException: Could not parse Master URL: 'nonsense'\n\tat x",
            SettingsError,
            "does not know the master",
        ),
        (
            "An error occurred\n: java.lang.IllegalStateException: All masters are unresponsive!",
            UnavailableError,
            "Spark did not start",
        ),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited", UnavailableError, "did not start"),
    ],
)
def test_a_session_that_does_not_start_is_an_error_of_ours(
    tmp_path: Path, text: str, kind: type[HeadgateError], words: str, launched: Launched,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(text)

    monkeypatch.setattr("pyspark.java_gateway.Popen", fail)
    settings = Settings(root=tmp_path, home=tmp_path / "home", spark_master="local[nonsense]")
    with pytest.raises(kind, match=words) as caught:
        start_session(settings)
    assert caught.value.why
    assert "An error occurred" not in caught.value.why
    assert caught.value.fix
