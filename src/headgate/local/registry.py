"""The embedded schema registry: Apicurio, with the Confluent API, its schemas in one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headgate.core.runtime.bundles import bundle_folder
from headgate.core.runtime.class_archive import archive_of
from headgate.core.runtime.java import find_java
from headgate.core.runtime.ports import LOOPBACK, any_port
from headgate.local.process import Command
from headgate.local.service import (
    DISK_FULL,
    JVM,
    NO_MEMORY,
    NOT_WRITABLE,
    PORT_IN_USE,
    EmbeddedServer,
    Runtime,
    archive_arguments,
    http_answer,
    json_field,
)

NAME = "registry"
PORT = 8081
API = "/apis/ccompat/v7"
INFO = "/apis/registry/v3/system/info"
CAUSES = (
    DISK_FULL,
    NOT_WRITABLE,
    NO_MEMORY,
    ("Address already in use", PORT_IN_USE, "stop the other program, or set its port"),
    ("seems to be already bound", PORT_IN_USE, "stop the other program, or set its port"),
    ("Database may be already in use", "another registry uses its data", "stop that one first"),
)


class RegistryServer(EmbeddedServer):
    """One registry: where it lives, how it is started and asked."""

    name = NAME
    causes = CAUSES

    def __init__(self, folder: Path, log: Path | None = None, port: int = 0) -> None:
        """`port` 0 takes any free one."""
        self.port = port or any_port()
        super().__init__(folder, log, self.url)

    @property
    def url(self) -> str:
        """Where clients of the Confluent API find it."""
        return f"http://{LOOPBACK}:{self.port}{API}"

    def find_runtime(self) -> Runtime:
        java, jars = find_java(), (program(),)
        return Runtime(java, jars, archive_of(NAME, java, [*map(str, jars), *JVM]))

    def command(self) -> Command:
        self.write({})
        argv = (
            str(self.runtime.java.executable),
            "-Xmx256m",
            *JVM,
            *archive_arguments(self.runtime, self.folder),
            f"-Dquarkus.http.host={LOOPBACK}",
            f"-Dquarkus.http.port={self.port}",
            f"-Dapicurio.app.name={self.identity}",
            "-Dapicurio.storage.kind=sql",
            "-Dapicurio.storage.sql.kind=h2",
            # Written through on every commit: a schema's id must outlive a kill.
            f"-Dapicurio.datasource.url=jdbc:h2:file:{self.folder / 'schemas'};WRITE_DELAY=0",
            *("-jar", str(self.runtime.jars[0])),
        )
        return Command(argv, self.log, self.folder)

    def is_own(self) -> bool:
        """Whether the registry that answers has the name that this one was started with."""
        info = http_answer(f"http://{LOOPBACK}:{self.port}{INFO}") or b""
        subjects = http_answer(f"{self.url}/subjects")
        return subjects is not None and json_field(info, "name") == self.identity

    def endpoints(self) -> Mapping[str, str]:
        return {"SCHEMA_REGISTRY_URL": self.url}


def program() -> Path:
    """The jar that starts it, fetched and unpacked when missing."""
    (found,) = bundle_folder("apicurio").glob("*-runner.jar")
    return found
