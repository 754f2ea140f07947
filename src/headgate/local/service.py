"""An embedded service: how it is started, asked, explained and stopped; the base of those that run on Java.

`Service` is the protocol that the supervisor knows. `EmbeddedServer` keeps all files in one folder and has an
identity of its own; its first run makes the class-data archive that later starts use.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Generic, Protocol, Self, TypeVar, cast

from headgate.core.runtime.bundles import bundle, class_path
from headgate.core.runtime.class_archive import archive_of, archive_options
from headgate.core.runtime.http import NoAnswerError, open_response
from headgate.core.runtime.java import SUPPORTED, Java, find_java
from headgate.errors import UnavailableError
from headgate.local.process import Child, Command, read_log, wait_until

READY_SECONDS = 90.0
PORT_IN_USE = "its port is in use"


@dataclass(frozen=True)
class Ended:
    """Why a child is gone, and whether starting it again may help."""

    why: str
    fix: str
    retry: bool

    @property
    def needs_another_port(self) -> bool:
        return self.why == PORT_IN_USE


class Service(Protocol):
    """One kind of child."""

    name: str
    address: str | None

    def command(self) -> Command: ...

    def ready(self, child: Child) -> bool: ...

    def explain(self, child: Child) -> Ended: ...

    def endpoints(self) -> Mapping[str, str]: ...

    def stop(self, child: Child) -> None: ...


Kind = TypeVar("Kind", bound=Service)


class Running(Generic[Kind]):
    """A service without a supervisor: started on entry, stopped on exit, killed at will between."""

    def __init__(self, service: Kind, limit: float = READY_SECONDS) -> None:
        self.service = service
        self._limit = limit
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def start(self) -> Self:
        """Start it and wait until it answers; an error says why it did not."""
        child = Child(self.service.command())
        wait_until(lambda: self.service.ready(child) or child.exit_code is not None, self._limit)
        self._child = child
        if child.exit_code is not None:
            ended = self.service.explain(child)
            raise UnavailableError(f"{self.service.name} ended", why=ended.why, fix=ended.fix)
        if not self.service.ready(child):
            child.kill()
            raise UnavailableError(
                f"{self.service.name} is not ready after {self._limit:.0f} s",
                why=f"its log is {child.command.log}",
            )
        return self

    def kill(self) -> None:
        """What `kill -9` does."""
        if self._child:
            self._child.kill()

    def stop(self) -> None:
        if self._child and self._child.exit_code is None:
            self.service.stop(self._child)

    def restart(self) -> Self:
        """Start it again on the same ports and data."""
        self.stop()
        return self.start()

    def __enter__(self) -> Self:
        return self if self._child else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


# One-tier compilation and one collector thread: a server of a laptop starts sooner and stays small.
JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
LOGGING = """status = warn
rootLogger.level = info
rootLogger.appenderRef.f.ref = f
appender.f.type = Console
appender.f.name = f
appender.f.layout.type = PatternLayout
appender.f.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
"""
DISK_FULL = ("No space left on device", "the disk is full", "free some space, then start it again")
NO_MEMORY = (
    *("OutOfMemoryError", "it ran out of memory"),
    "stop something else on this machine",
)
NOT_WRITABLE = (
    *("Permission denied", "its data folder cannot be written"),
    "check the owner of the folder",
)
COMPLAINT = re.compile(r"^(\S+ )?(ERROR|FATAL)\b|^\S*(Exception|Error)\b|^Exception in thread")
# What a server's log says, what it means, what to do.
Cause = tuple[str, str, str]


@dataclass(frozen=True)
class Runtime:
    """The Java and the jars that a server runs on, and the archive that speeds its start."""

    java: Java
    jars: tuple[Path, ...]
    archive: Path | None

    @property
    def class_path(self) -> str:
        return class_path(self.jars)

    def jar(self, name: str) -> Path:
        """The jar of this artifact."""
        return next(jar for jar in self.jars if jar.name.startswith(f"{name}-"))


def runtime_of(
    name: str, options: Sequence[str] = JVM, versions: Sequence[int] = SUPPORTED
) -> Runtime:
    """Java and a bundle, fetched when missing."""
    java, jars = find_java(versions=versions), bundle(name)
    return Runtime(java, jars, archive_of(name, java, [*map(str, jars), *options]))


def archive_arguments(runtime: Runtime, folder: Path) -> tuple[str, ...]:
    """Use the class archive, or train one in this run when there is none."""
    found = archive_options(runtime.archive)
    if found or runtime.archive is None:
        return found
    return (f"-XX:ArchiveClassesAtExit={_draft(folder)}", "-Xlog:cds=off")


def _draft(folder: Path) -> Path:
    return folder / "classes.jsa"


def stop(runtime: Runtime, folder: Path, child: Child, limit: float) -> None:
    """Stop it cleanly, and keep the class archive if this was the run that made one."""
    clean = child.stop(limit)
    draft = _draft(folder)
    if runtime.archive is not None and clean and draft.is_file():
        runtime.archive.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(draft, arriving := runtime.archive.with_suffix(f".{os.getpid()}"))
        arriving.replace(runtime.archive)
    draft.unlink(missing_ok=True)


def why_it_ended(
    causes: Sequence[Cause], log: Path, exit_code: int | None, since: int = 0
) -> tuple[str, str]:
    """Why a server is gone, and what to do, from what it logged since it was started."""
    why, fix = cause(causes, read_log(log, since))
    if not why and exit_code is not None and exit_code < 0:
        why = f"it was killed by signal {-exit_code}"
    return why or f"exit code {exit_code}", fix or f"read {log}"


def cause(causes: Sequence[Cause], text: str) -> tuple[str, str]:
    """The known cause in a server's words, else its last complaint."""
    for mark, why, fix in causes:
        if mark in text:
            return why, fix
    complaints = [line for line in text.splitlines() if COMPLAINT.search(line)]
    return (complaints[-1].strip()[:200] if complaints else ""), ""


ANSWER_SECONDS = 2.0
IDENTITY = "identity"


class EmbeddedServer:
    """A service whose files are all in one folder; the runtime is looked for by those on Java."""

    name: ClassVar[str]
    stop_seconds: ClassVar[float] = 20.0
    # What its log says, what it means, what to do; and those after which it may be tried again.
    causes: ClassVar[tuple[Cause, ...]]
    passing: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, folder: Path, log: Path | None, address: str) -> None:
        self.folder = folder.absolute()
        self.log = log or self.folder / f"{self.name}.log"
        self.address: str | None = address

    @cached_property
    def runtime(self) -> Runtime:
        """Java and the jars, fetched when first needed."""
        return self.find_runtime()

    def find_runtime(self) -> Runtime:
        return runtime_of(self.name)

    @property
    def identity(self) -> str:
        """A name that no other server has, drawn when its folder is first used and kept there.

        A server that can be told a name gives it to whoever asks. So what answers on its port can
        be known as this server, and not one of another stack.
        """
        return read_or_draw(self.folder / IDENTITY, f"headgate-{secrets.token_hex(8)}")

    def is_own(self) -> bool:
        """Whether what answers on its port is this server."""
        raise NotImplementedError

    def ready(self, child: Child) -> bool:
        return self.is_own()

    def write(self, texts: Mapping[str, str], folders: Sequence[Path] = ()) -> None:
        """Its configuration, as it is to be at this start."""
        try:
            for folder in (self.folder, *folders):
                folder.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (self.folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UnavailableError(
                f"the folder of the embedded {self.name} cannot be written",
                why=f"{error.filename or self.folder}: {error.strerror}",
                fix="free some space or set HEADGATE_HOME to a folder that can be written",
            ) from error

    def explain(self, child: Child) -> Ended:
        why, fix = why_it_ended(self.causes, self.log, child.exit_code, child.log_from)
        final = {known for _, known, _ in self.causes} - self.passing
        return Ended(why, fix, retry=why not in final)

    def endpoints(self) -> Mapping[str, str]:
        return {}

    def stop(self, child: Child) -> None:
        stop(self.runtime, self.folder, child, self.stop_seconds)


def read_or_draw(path: Path, text: str) -> str:
    """What a file of the owner's says, written with this text when there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(text)
    except FileExistsError:
        pass
    return path.read_text("ascii")


def http_answer(url: str) -> bytes | None:
    """What is answered with 200 there; None when nothing is."""
    try:
        with open_response("GET", url, ANSWER_SECONDS, follow_redirects=True) as answer:
            return answer.read() if answer.status_code == 200 else None
    except NoAnswerError:
        return None


def json_field(text: bytes, name: str) -> str | None:
    """A text of a JSON object; None when there is none of that name."""
    try:
        found: object = json.loads(text)
    except ValueError:
        return None
    value = cast("dict[str, object]", found).get(name) if isinstance(found, dict) else None
    return value if isinstance(value, str) else None
