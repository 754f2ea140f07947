"""What ledger, topics and consumers say of filters, gathered for the proof."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from headgate.core.kafka.engine_topics import Topics
from headgate.core.kafka.reader import Found, Stretch, committed_records
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.compile_fragments import job_name
from headgate.demo.filters.filter_proof import Counts, FilterProof, lanes_of
from headgate.filters.consumers.config import load_config
from headgate.filters.store.routing_model import Standing

ORIGIN = "headgate.origin"


@dataclass(frozen=True)
class Place:
    """Where the events of one filter arrive: its topic, and its consumer's state."""

    filter: str
    topic: str
    state: Path


def places(home: Path, filters: Mapping[str, str], consumers: Sequence[Path]) -> tuple[Place, ...]:
    """Filters by id with their topics, each with the consumer that reads its topic."""
    configs = {c.topic: c for c in (load_config(path, {}) for path in consumers)}
    folder = home / "consumers"
    return tuple(
        Place(name, topic, folder / f"{configs[topic].group}.db") for name, topic in filters.items()
    )


def handled(state: Path) -> Counter[str]:
    """Event ids that had their effect at a consumer, and how often."""
    if not state.is_file():
        return Counter()
    try:
        with closing(sqlite3.connect(f"file:{state}?mode=ro", uri=True, timeout=10)) as database:
            rows = database.execute("SELECT event_id FROM effects").fetchall()
    except sqlite3.OperationalError:  # it has not made its tables yet
        return Counter()
    return Counter(str(row[0]) for row in rows)


def routed_records(store: OpsStore, source: str) -> dict[str, int]:
    """What became of every record that the router read."""
    found: Counter[str] = Counter()
    for row in store.ledger(job_name("router", source)):
        found.update({str(name): n for name, n in row.outcomes.items()})
    return dict(sorted(found.items()))


def prove(
    store: OpsStore,
    bootstrap: str,
    source: str,
    place: Place,
    expected: Sequence[str],
    repeats: int = 0,
) -> FilterProof:
    """One filter against every place; `expected` are the events that must be there, and no others.

    `repeats` is how many records of them the source has beyond one each.
    """
    state = Topics(bootstrap).found(source)
    ends = {str(partition): end for partition, end in state.end.items()}
    versions = {v.revision: f"v{v.version}" for v in reversed(store.control.versions(place.filter))}
    routed = store.routing.routed(place.filter)
    arrived, seen = records(bootstrap, place.topic), handled(place.state)
    wanted = Counter(expected)
    strays = {event_id(record) for record in arrived} - set(wanted)
    return FilterProof(
        filter=place.filter,
        lanes=lanes_of(routed, ends, versions, _first_cutover(store, place.filter)),
        counts=Counts(
            expected=len(expected),
            ledger=routed.n,
            topic=len({record.headers.get(ORIGIN, "") for record in arrived}),
            consumer=sum(seen.values()),
            repeats=repeats,
        ),
        missing=tuple((wanted - seen).elements()),
        unexpected=tuple(sorted({*(seen - wanted), *strays})),
    )


BEGUN = (Standing.LIVE, Standing.AHEAD)


def _first_cutover(store: OpsStore, filter_id: str) -> Mapping[str, int]:
    """Where its first revision began to judge."""
    standings = store.routing.history(filter_id)
    live = [one.cutover for one in standings if one.standing in BEGUN]
    return live[0] if live else {}


def event_id(record: Found) -> str:
    """The event of a record of the source or of a filter's topic."""
    return (record.key or b"").decode(errors="replace")


def records(bootstrap: str, topic: str) -> list[Found]:
    """All records of a topic as it is now."""
    state = Topics(bootstrap).describe(topic)
    if state is None:
        return []
    return list(committed_records(bootstrap, Stretch.whole(state), quiet=True))
