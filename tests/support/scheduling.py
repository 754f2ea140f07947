"""How pytest-xdist hands out tests to its workers."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SERVERS = "servers"


class FileScheduling(LoadFileScheduling):
    """Hands out tests by file, those of `files_with_servers` as one lot.

    The worker with that lot then takes files from the end of the list, where the unit tests are: so
    it does not start a Spark session of its own while the other workers can do without it.
    `--dist loadgroup` would group files by marks, but xdist 3.8 loses them with pytest 9.
    """

    def __init__(self, files_with_servers: frozenset[str], config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._files_with_servers = files_with_servers

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return SERVERS if file in self._files_with_servers else file

    def _assign_work_unit(self, node: WorkerController) -> None:
        if SERVERS in self.assigned_work[node]:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)
