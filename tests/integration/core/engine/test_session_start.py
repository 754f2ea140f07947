"""How the driver's JVM is started: no secret in its command line, and a failed start in our words."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate.config.settings import Settings
from headgate.core.engine import session as session_module
from headgate.core.engine.session import ConnectServer, _submitted_by_file, start_session
from headgate.errors import HeadgateError, SettingsError, UnavailableError

TOKEN = "a-secret-token"


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
    monkeypatch.setattr(session_module, "session_jars", lambda: ())
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


def test_tasks_have_the_stack_that_deeply_nested_json_needs(spark: SparkSession) -> None:
    """Whether less is enough for a record depends on what the JVM has compiled so far."""
    assert spark.range(1).count() == 1
    jvm = session_module.gateway_process()
    assert jvm is not None
    assert "-Xss4m" in Path(f"/proc/{jvm.pid}/cmdline").read_text().split("\0")
