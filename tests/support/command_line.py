"""The command line, called in this process."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.api_server import RunningApi

from headgate.cli import main as command_line


class Shell:
    """Runs commands with a person's API key; keeps the standard output and error of the last one."""

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
