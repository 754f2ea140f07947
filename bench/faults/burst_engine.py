"""An engine over a home of its own that may be killed, and the commands given to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from bench.faults.fault_rig import TOPIC, Rig, ended
from headgate.config.settings import Settings
from headgate.core.kafka.engine_topics import Topics
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import OperationError, UnavailableError
from headgate.local.process import Child, wait_until

READY_SECONDS = 120.0
STOP_SECONDS = 60.0


class StreamEngine:
    """`headgate engine run`; it is gone when the block is left."""

    def __init__(self, place: Rig, home: Settings) -> None:
        self._place, self.home = place, home
        self._child: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.stop(STOP_SECONDS)

    def start(self) -> None:
        announced = self.home.home / "engine.json"
        announced.unlink(missing_ok=True)
        child = self._child = self._place.begin(self.home, "engine", "engine", "run")
        if not wait_until(
            lambda: announced.is_file() or child.exit_code is not None, READY_SECONDS
        ):
            raise UnavailableError("the engine did not start", fix=f"read {child.command.log}")

    def kill(self) -> None:
        assert self._child is not None
        self._child.kill()

    def command(self, *words: str) -> None:
        """A command of ours, to its end; it must succeed."""
        done = ended(self._place.begin(self.home, "-".join(words[:3]), *words))
        if done.exit_code:
            raise OperationError(
                f"headgate {' '.join(words)} ended with {done.exit_code}",
                why="\n".join(done.log.strip().splitlines()[-5:]),
            )


def unread(home: Settings, store: OpsStore, job: str) -> int:
    """Offsets on the topic that no batch has settled yet."""
    topic = Topics(home.need("bootstrap_servers")).describe(TOPIC)
    if topic is None:
        raise OperationError(f"topic {TOPIC} is gone")
    settled = store.settled_range(job)
    done: Mapping[str, int] = settled.end if settled else {}
    return sum(end - done.get(str(partition), 0) for partition, end in topic.end.items())
