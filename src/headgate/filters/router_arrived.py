"""What of each filter stands on its topic: counted by origin, so that a record sent twice counts once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.kafka.engine_topics import TopicState
    from headgate.core.ledger.ops_store import OpsStore

# More than this is not read for a certificate; the ledger's sums hold without it.
MOST = 500_000
HEADERS = ("headgate.filter", "headgate.source_id", "headgate.origin")
Origin = tuple[str, ...]


@dataclass(frozen=True)
class Arrived:
    """The records of a filter on its topic; `whole` when none of the topic's have expired."""

    records: int
    whole: bool = True

    def fits(self, sent: int) -> bool:
        return self.records == sent if self.whole else self.records <= sent


def arrived(settings: Settings, store: OpsStore, source: str) -> dict[str, Arrived]:
    """Per filter of this source, what is on all topics that it ever sent to."""
    from headgate.core.kafka.engine_topics import Topics

    topics = Topics(str(settings.need("bootstrap_servers")))
    states = [topics.describe(name) for name in store.routing.topics(source)]
    there = [state for state in states if state is not None]
    if sum(state.span for state in there) > MOST:
        return {}
    filters = {one.filter for one in store.routing.seen(source)}
    found: dict[str, set[Origin]] = {filter: set() for filter in filters}
    for state in there:
        for filter, *origin in _origins(topics.bootstrap, state):
            if filter in found:
                found[filter].add(tuple(origin))
    whole = len(there) == len(states) and not any(any(s.begin.values()) for s in there)
    return {filter: Arrived(len(origins), whole) for filter, origins in found.items()}


def _origins(bootstrap: str, state: TopicState) -> Iterator[Origin]:
    from headgate.core.kafka.reader import Stretch, committed_records

    for record in committed_records(bootstrap, Stretch.whole(state), quiet=True):
        headers = record.headers
        yield tuple(headers.get(name, "") for name in HEADERS)
