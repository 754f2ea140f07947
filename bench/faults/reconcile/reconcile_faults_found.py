"""What a play left: the verdict of every key against what was planted, and that nothing is left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.faults.reconcile.reconcile_faults_plant import Pair
from bench.faults.reconcile.rig import JOB, TABLE, PairRig
from headgate.core.engine.connect import connect
from headgate.core.lake.statements import sql
from headgate.core.ledger.ops_store import OpsStore

# A side that came after the window is told as late; which side of it an outage put a key on
# depends on the clock, so both count as what was planted.
PLAIN = {"LATE_MATCH": "MATCH", "LATE_MISMATCH": "MISMATCH"}
# What the merged states say now, beside the last row that was appended for the key.
FINALS = f"""
SELECT now.pk, now.dq_status, now.settled, last.told
FROM dq_results_{TABLE} AS now
LEFT JOIN (
  SELECT pk, max_by(dq_status, struct(processing_time, settled)) AS told
  FROM lake.dq.results_{TABLE}
  GROUP BY pk
) AS last ON last.pk = now.pk"""


@dataclass(frozen=True)
class Final:
    """The verdict of one key in the end, and the last one that was told of it."""

    pk: str
    status: str
    settled: bool
    told: str


@dataclass(frozen=True)
class Compared:
    """Planted against found, as multisets, and what is wrong key by key."""

    planted: Mapping[str, int]
    found: Mapping[str, int]
    late: int
    wrong: tuple[str, ...]
    changes: Mapping[str, int]

    @property
    def holds(self) -> bool:
        return not self.wrong and self.planted == self.found


def finals(rig: PairRig) -> tuple[Final, ...]:
    """Every key as the engine's view has it now."""
    with connect(rig.running_engine()) as session:
        rows = sql(session, FINALS).collect()
    return tuple(
        Final(row["pk"], row["dq_status"], bool(row["settled"]), row["told"] or "") for row in rows
    )


def changes(rig: PairRig) -> dict[str, int]:
    """How often each verdict was told, in all histories."""
    with connect(rig.running_engine()) as session:
        query = f"SELECT dq_status, count(*) AS n FROM dq_audit_{TABLE} GROUP BY dq_status"
        rows = sql(session, query).collect()
    return {row["dq_status"]: int(row["n"]) for row in rows}


def compared(planted: Sequence[Pair], found: Sequence[Final], told: Mapping[str, int]) -> Compared:
    """Hold every key against its role."""
    by_key: dict[str, list[Final]] = {}
    for final in found:
        by_key.setdefault(final.pk, []).append(final)
    wrong = [words for pair in planted if (words := _fault(pair, by_key.pop(pair.pk, [])))]
    wrong += [f"{pk} was never planted" for pk in by_key]
    return Compared(
        planted=dict(sorted(Counter(pair.role for pair in planted).items())),
        found=dict(sorted(Counter(PLAIN.get(f.status, f.status) for f in found).items())),
        late=sum(final.status in PLAIN for final in found),
        wrong=tuple(wrong),
        changes=dict(sorted(told.items())),
    )


def _fault(pair: Pair, found: Sequence[Final]) -> str:
    if len(found) != 1:
        return f"{pair.pk}, planted as {pair.role}, stands there {len(found)} times"
    (final,) = found
    if not final.settled:
        return f"{pair.pk}, planted as {pair.role}, is still {final.status}"
    if PLAIN.get(final.status, final.status) != pair.role:
        return f"{pair.pk}, planted as {pair.role}, is {final.status}"
    if final.told != final.status:
        return f"{pair.pk} is {final.status}, but {final.told or 'nothing'} was told of it last"
    return ""


def unread(rig: PairRig, store: OpsStore) -> int:
    """Offsets of both topics that no batch has settled yet."""
    from headgate.core.kafka.engine_topics import Topics

    settled = store.settled_range(JOB)
    done: Mapping[str, int] = settled.end if settled else {}
    topics = Topics(rig.home.need("bootstrap_servers"))
    sides = {"onprem": "topic1", "cloud": "topic2"}
    return sum(
        end - done.get(f"{side}:{partition}", 0)
        for side, topic in sides.items()
        if (state := topics.describe(topic))
        for partition, end in state.end.items()
    )
