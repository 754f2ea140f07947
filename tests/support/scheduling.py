"""How pytest-xdist hands out tests to its workers."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling


class FileScheduling(LoadFileScheduling):
    """Hands out tests by file, those of `files_with_servers` as one lot.

    `--dist loadgroup` would do it by marks, but xdist 3.8 loses them with pytest 9.
    """

    def __init__(self, files_with_servers: frozenset[str], config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._files_with_servers = files_with_servers

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "servers" if file in self._files_with_servers else file
