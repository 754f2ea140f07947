"""A reconciliation under load while Cassandra, Connect, Kafka and the engine are away in turn.

Nothing may be lost, every gap must be told by those who meet it, and all of them must come back
without a hand. What is found in the end is held, key by key, against what was planted.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import orjson

from bench.faults.reconcile.reconcile_faults_play import (
    CONNECT,
    FAULTS,
    FaultReport,
    Play,
    Say,
    Size,
)
from bench.faults.reconcile.rig import Times, pair_rig
from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import DifferenceError

SMALL = Size(keys=100, cassandra_away=6.0, away=3.0, calm=3.0, times=Times(window=12, grace=4))


def run_reconcile_faults(
    settings: Settings,
    folder: Path,
    size: Size | None = None,
    faults: Sequence[str] = FAULTS,
    say: Say = lambda words: None,
) -> FaultReport:
    """The whole play; DifferenceError when anything is not as it must be."""
    place = settings.home / "reconcile-faults"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    size = size or Size()
    with pair_rig(settings, place, size.times, with_connect=CONNECT in faults) as rig:
        rig.home.home.mkdir(parents=True, exist_ok=True)
        with OpsStore.open(rig.home.ops_store_url) as store:
            report = Play(rig, store, size, say).perform(faults)
    write_report(folder, report)
    if report.faults:
        raise DifferenceError(
            "the faults left a trace", why="\n".join(report.faults), fix=f"read {place}"
        )
    return report


def write_report(folder: Path, report: FaultReport) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = {**asdict(report), "faults": report.faults}
    file = folder / "reconcile_faults.json"
    file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")


def report_text(report: FaultReport) -> str:
    """For a person: each gap, who told of it, and what became of the keys."""
    lines = [
        f"{gap.what:<10} away {gap.away_seconds:g} s, work went on {gap.recovered_seconds:g} s later;"
        f" told by {', '.join(who for who, words in gap.told.items() if words) or 'nobody'}"
        for gap in report.struck
    ]
    found = ", ".join(f"{n:,} {status}" for status, n in report.compared.found.items())
    lines += [
        f"{report.keys:,} keys, {report.events:,} events, all settled {report.drained_seconds:g} s"
        " after the last",
        f"found as planted: {found}; {report.compared.late:,} of them late",
        f"certificate: {report.certificate}; the job was started again {report.restarts} times",
    ]
    return "\n".join(lines)
