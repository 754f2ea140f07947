"""What the steps of a reconciliation look at: keys in the lake, the hasher's child, all places at once."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.lake.duckdb_reader import Lake
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.demo.reconcile.oracle import ExpectedKey
    from headgate.demo.reconcile.reconcile_planted_gather import PairGathering
    from headgate.local.process import Child

TABLE = "business"


def expected(keys: Iterable[ExpectedKey], *, waited: bool) -> Iterator[ExpectedKey]:
    """As planted; where the second wave came before the first verdicts, its keys need not have waited."""
    for key in keys:
        free = key.role == "soon" and not waited
        yield replace(key, expected=replace(key.expected, path=())) if free else key


def newest(lake: Lake) -> dict[str, str]:
    """Each key with its newest verdict in the lake; none before the first batch."""
    from headgate.reconcile.report.gather import newest_sql

    if not lake.exists(f"dq.results_{TABLE}"):
        return {}
    scan = lake.scan_sql(f"dq.results_{TABLE}")
    rows = lake.query(f"SELECT pk, dq_status FROM {newest_sql(scan)}")
    return {str(pk): str(status) for pk, status in rows}


def newest_counts(lake: Lake) -> dict[str, int]:
    return dict(sorted(Counter(newest(lake).values()).items()))


@contextmanager
def pair_gathering(settings: Settings, store: OpsStore) -> Generator[PairGathering]:
    """One look at all places, with a session on the engine."""
    from headgate.core.engine.connect import connect
    from headgate.core.lake.statements import sql
    from headgate.demo.reconcile.feed import plan_of
    from headgate.demo.reconcile.reconcile_planted_gather import PairGathering, Places
    from headgate.quality.compile.judge import open_rules
    from headgate.quality.revision import with_limits
    from headgate.quality.spec.limits import limits_of
    from headgate.reconcile.cli.reconcile_report import why_of

    judged = with_limits(open_rules(settings, TABLE), settings)
    reconcile = judged.table.reconcile
    why = why_of(settings, judged)
    assert reconcile is not None
    assert why is not None
    with connect(settings) as session:
        places = Places(
            table=TABLE,
            ask=lambda query: [row.asDict() for row in sql(session, query).collect()],
            why=why,
            topics=plan_of(settings, TABLE).topics,
            status_topic=reconcile.status_topic,
            audit_topic=reconcile.audit.topic,
            limits=limits_of(reconcile),
        )
        yield PairGathering(settings, store, places)


def start_hasher(log: Path) -> Child:
    from headgate.local.process import Child, Command

    words = (sys.executable, "-m", "headgate.cli.main", "reconcile", "hasher", TABLE)
    return Child(Command(words, log, Path.cwd(), dict(os.environ)))


def words_of(log: Path) -> str:
    return log.read_text("utf-8", errors="replace") if log.is_file() else ""
