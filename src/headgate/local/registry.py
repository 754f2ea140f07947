"""The embedded schema registry: Apicurio, with the Confluent API, its schemas in one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from headgate.engine.archive import archive_of
from headgate.engine.bundles_folder import bundle_folder
from headgate.engine.java import find_java
from headgate.errors import UnavailableError
from headgate.local import java_server
from headgate.local.java_server import JVM, Runtime
from headgate.local.process import LOOPBACK, Child, Command, any_port
from headgate.local.service import Ended

NAME = "registry"
PORT = 8081
API = "/apis/ccompat/v7"
STOP_SECONDS = 15.0
ANSWER_SECONDS = 2.0
CAUSES = (
    java_server.DISK_FULL,
    java_server.NOT_WRITABLE,
    java_server.NO_MEMORY,
    ("Address already in use", "its port is in use", "stop the other program, or set its port"),
    ("seems to be already bound", "its port is in use", "stop the other program, or set its port"),
    ("Database may be already in use", "another registry uses its data", "stop that one first"),
)
FINAL = frozenset(why for _, why, _ in CAUSES)


class RegistryServer:
    """One registry: where it lives, how it is started, asked, explained and stopped."""

    name = NAME

    def __init__(self, folder: Path, log: Path | None = None, port: int = 0) -> None:
        """`port` 0 takes any free one."""
        self.folder = folder.absolute()
        self.log = log or self.folder / "registry.log"
        self.port = port or any_port()
        self._runtime: Runtime | None = None
        self.address: str | None = self.url

    @property
    def url(self) -> str:
        """Where clients of the Confluent API find it."""
        return f"http://{LOOPBACK}:{self.port}{API}"

    @property
    def runtime(self) -> Runtime:
        """Java and the program, fetched when first needed."""
        if self._runtime is None:
            java = find_java()
            jars = (program(),)
            self._runtime = Runtime(java, jars, archive_of(NAME, java, [*map(str, jars), *JVM]))
        return self._runtime

    def command(self) -> Command:
        self._prepare()
        argv = (
            str(self.runtime.java.executable),
            "-Xmx256m",
            *JVM,
            *java_server.archive_arguments(self.runtime, self.folder),
            f"-Dquarkus.http.host={LOOPBACK}",
            f"-Dquarkus.http.port={self.port}",
            "-Dapicurio.storage.kind=sql",
            "-Dapicurio.storage.sql.kind=h2",
            # Written through on every commit: a schema's id must outlive a kill.
            f"-Dapicurio.datasource.url=jdbc:h2:file:{self.folder / 'schemas'};WRITE_DELAY=0",
            *("-jar", str(self.runtime.jars[0])),
        )
        return Command(argv, self.log, self.folder)

    def _prepare(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnavailableError(
                "the embedded registry's folder cannot be written",
                why=f"{self.folder}: {error.strerror}",
                fix="free some space or set HEADGATE_HOME to a folder that can be written",
            ) from error

    def ready(self, child: Child) -> bool:
        try:
            with urlopen(f"{self.url}/subjects", timeout=ANSWER_SECONDS) as answer:
                return answer.status == 200
        except (URLError, OSError):
            return False

    def explain(self, child: Child) -> Ended:
        why, fix = java_server.why_it_ended(CAUSES, self.log, child.exit_code, child.log_from)
        return Ended(why, fix, retry=why not in FINAL)

    def endpoints(self) -> Mapping[str, str]:
        return {"SCHEMA_REGISTRY_URL": self.url}

    def stop(self, child: Child) -> None:
        java_server.stop(self.runtime, self.folder, child, STOP_SECONDS)


def program() -> Path:
    """The jar that starts it, fetched and unpacked when missing."""
    (found,) = bundle_folder("apicurio").glob("*-runner.jar")
    return found
