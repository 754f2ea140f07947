"""What is heard while something is away: the words of those who meet the gap."""

from __future__ import annotations

from collections.abc import Sequence

from bench.faults.reconcile.rig import JOB, PairRig, log_size, new_words
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics import metrics_names as names
from headgate.errors import HeadgateError

WORDS_KEPT = 6
# The hasher's own progress is no word about a gap.
PROGRESS = "hashed"


class Listening:
    """Hears what is said from now on."""

    def __init__(self, rig: PairRig, store: OpsStore) -> None:
        self._rig, self._store = rig, store
        self._hasher_log = log_size(rig.hasher.command.log) if rig.hasher else 0
        self._connect_log = log_size(rig.connect.service.log) if rig.connect else 0

    def hasher(self) -> tuple[str, ...]:
        """Its own words, and its gauge."""
        words = new_words(self._rig.hasher, self._hasher_log)
        gauge = ("metrics: paused",) if is_paused(self._rig) else ()
        return (*_kept([line for line in words if PROGRESS not in line]), *gauge)

    def connect(self) -> tuple[str, ...]:
        """What one hears of connectors: their states, and what the worker logged."""
        if self._rig.connect is None:
            return ()
        try:
            states = [f"{s.name} {s.state}: {s.why}".strip(": ") for s in self._rig.rest().states()]
        except HeadgateError as error:
            return (error.one_line,)
        log = self._rig.connect.service.log.read_bytes()[self._connect_log :]
        lines = log.decode(errors="replace").splitlines()
        warned = [line for line in lines if " WARN " in line or " ERROR " in line]
        return (*states, *_kept(warned))

    def job(self) -> tuple[str, ...]:
        """What `headgate job list` says of it."""
        run = self._store.latest(JOB)
        words = run.error_text or run.error_code if run else None
        return (f"{run.state}: {words}",) if run and words else ()

    def client(self) -> tuple[str, ...]:
        """What any command says that needs the broker."""
        from headgate.core.kafka.engine_topics import Topics

        try:
            Topics(self._rig.home.need("bootstrap_servers"), timeout=3.0).need()
        except HeadgateError as error:
            return (error.one_line,)
        return ()

    def health(self) -> tuple[str, ...]:
        """What `headgate local health` says."""
        from headgate.local.health import health

        return tuple(f"{h.service}: {h.words}" for h in health(self._rig.home) if not h.healthy)


def is_paused(rig: PairRig) -> bool:
    return rig.hasher_metrics().get(names.HASHER_PAUSED.name, 1.0) > 0


def readings(rig: PairRig) -> float:
    """Readings that the hasher has sent."""
    return rig.hasher_metrics().get(names.HASHER_READINGS.name, 0.0)


def _kept(lines: Sequence[str]) -> list[str]:
    """The first few different ones, cut to a readable length."""
    return [line[:300] for line in dict.fromkeys(lines)][:WORDS_KEPT]
