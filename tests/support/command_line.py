"""The command line in this process: who gives a command, what it prints, how it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.api_server import RunningApi

from headgate.cli import main as command_line


class Shell:
    """Commands as one person gives them; what they print, and their exit codes."""

    def __init__(
        self, api: RunningApi, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.api, self._patch, self._capsys = api, patch, capsys
        self.out = self.err = ""

    def __call__(self, who: str | None, *words: str) -> int:
        self._patch.setenv("HEADGATE_API_KEY", self.api.keys[who] if who else "")
        self._patch.setattr("sys.argv", ["headgate", *words])
        self._capsys.readouterr()
        try:
            command_line.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self) -> dict[str, Any]:
        return json.loads(self.out)
