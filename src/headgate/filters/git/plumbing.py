"""The git command: no hooks, no configuration but ours, no questions, an end in time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from headgate.config.reference import without_secrets
from headgate.errors import UnavailableError

SECONDS = 30.0
# What git would otherwise read of the user, of the machine or of a hook.
ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_ALLOW_PROTOCOL": "file:https:ssh",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C.UTF-8",
}
OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.logAllRefUpdates=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "credential.helper=",
    "transfer.fsckObjects=true",
)


class Git:
    """Runs git in one bare repository."""

    def __init__(self, folder: Path, seconds: float = SECONDS) -> None:
        self.folder, self._seconds = folder, seconds

    def text(self, *words: str, given: str = "", extra: Mapping[str, str] | None = None) -> str:
        """What git printed, without the last line end."""
        told = self.run(*words, given=given.encode(), extra=extra)
        return told.decode(errors="replace").rstrip("\n")

    def run(self, *words: str, given: bytes = b"", extra: Mapping[str, str] | None = None) -> bytes:
        """What git printed; raises when it fails or takes too long."""
        done = self.tried(*words, given=given, extra=extra)
        if done.returncode:
            raise self.failure(words, done)
        return done.stdout

    def failure(
        self, words: Sequence[str], done: subprocess.CompletedProcess[bytes]
    ) -> UnavailableError:
        """What git said, without the folder, which is nobody's business who asks over the API."""
        told = done.stderr.decode(errors="replace").strip()
        return UnavailableError(
            f"git {words[0]} failed",
            why=without_secrets(told.replace(str(self.folder), f"…/{self.folder.name}")),
            fix="look at the repository with git; nothing was changed in the ops store",
        )

    def tried(
        self, *words: str, given: bytes = b"", extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """The same for calls whose failure is an answer."""
        options = [part for option in OPTIONS for part in ("-c", option)]
        command = ["git", f"--git-dir={self.folder}", *options, *words]
        try:
            return subprocess.run(
                command,
                input=given,
                capture_output=True,
                env={**environment(), **(extra or {})},
                timeout=self._seconds,
                check=False,
            )
        except FileNotFoundError as error:
            raise UnavailableError(
                "git is not installed",
                why="every accepted filter is a commit",
                fix="install git, then try again: what waits is committed then",
            ) from error
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(
                f"git {words[0]} took longer than {self._seconds:g} s",
                fix="look whether the remote answers",
            ) from error


def environment() -> dict[str, str]:
    """What git sees: nothing of git's own variables, and our answers to them."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, **ALONE}
