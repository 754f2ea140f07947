"""What the added servers have in common: a folder, a log, and why they end; most run on Java."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, cast
from urllib.error import URLError
from urllib.request import urlopen

from headgate.errors import UnavailableError
from headgate.local import java_server
from headgate.local.java_server import Cause, Runtime
from headgate.local.process import Child
from headgate.local.service import Ended

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
        return java_server.runtime_of(self.name)

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
        why, fix = java_server.why_it_ended(self.causes, self.log, child.exit_code, child.log_from)
        final = {known for _, known, _ in self.causes} - self.passing
        return Ended(why, fix, retry=why not in final)

    def endpoints(self) -> Mapping[str, str]:
        return {}

    def stop(self, child: Child) -> None:
        java_server.stop(self.runtime, self.folder, child, self.stop_seconds)


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
        with urlopen(url, timeout=ANSWER_SECONDS) as answer:
            return answer.read() if answer.status == 200 else None
    except (URLError, OSError):
        return None


def json_field(text: bytes, name: str) -> str | None:
    """A text of a JSON object; None when there is none of that name."""
    try:
        found: object = json.loads(text)
    except ValueError:
        return None
    value = cast("dict[str, object]", found).get(name) if isinstance(found, dict) else None
    return value if isinstance(value, str) else None
