"""Compares a home whose engines were killed with an undisturbed home on the same topic: tables, certificate, dead letters."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass

from bench.faults.rig import BRONZE, SILVER, Rig
from headgate.certify.certificate import broken, run_certification, write
from headgate.certify.evidence import declared
from headgate.config.settings import Settings
from headgate.core.accounting.table_evidence import table_evidence
from headgate.core.kafka.reader import Stretch, committed_records
from headgate.core.kafka.topics import Topics
from headgate.core.lake.duckdb_reader import Lake, quoted
from headgate.core.sql.fragments import DEAD_LETTERS_TABLE

ORIGIN = ("headgate.topic", "headgate.partition", "headgate.offset")

Origin = tuple[str, ...]


def origins_on_topic(bootstrap: str, topic: str) -> list[Origin]:
    """The origin of every dead letter on the topic; one that was sent twice is there twice."""
    state = Topics(bootstrap).describe(topic)
    if state is None:
        return []
    letters = committed_records(bootstrap, Stretch.whole(state), quiet=True)
    return [tuple(letter.headers.get(name, "") for name in ORIGIN) for letter in letters]


@dataclass(frozen=True)
class Comparison:
    """One thing that must be the same with and without kills."""

    what: str
    with_kills: str
    undisturbed: str

    @property
    def holds(self) -> bool:
        return self.with_kills == self.undisturbed


def compare(place: Rig, home: Settings) -> tuple[Comparison, ...]:
    """Finish the killed home, run a calm one, and hold one against the other."""
    calm = place.home("calm")
    shutil.rmtree(calm.home, ignore_errors=True)
    for each in (home, calm):
        for job in (BRONZE, SILVER):
            place.finish(each, job)
    contents, expected = content(home), content(calm)
    return (
        *(Comparison(what, contents[what], expected[what]) for what in expected),
        Comparison("certificate", certified(home), "holds"),
        Comparison("independent re-check", rechecked(home), "holds"),
        Comparison("dead letters on their topic", letters(home), letters(calm)),
    )


def content(home: Settings) -> dict[str, str]:
    """Rows and content hash of each table."""
    dataset = declared(home, home.need("dataset"))
    mine = f"job = {quoted('bronze-' + dataset.name)}"
    wanted = ((dataset.bronze_table, ""), (dataset.silver_table, ""), (DEAD_LETTERS_TABLE, mine))
    with Lake.open(home) as lake:
        found = {name: table_evidence(lake, name, where) for name, where in wanted}
    return {
        name: f"{table.rows:,} rows, {table.content_hash}" if table else "no table"
        for name, table in found.items()
    }


def certified(home: Settings) -> str:
    certificate = run_certification(home)
    write(certificate, home.home / "certificate.json")
    return "; ".join(broken(certificate)) or "holds"


def rechecked(home: Settings) -> str:
    script = home.root / "scripts" / "recheck_certificate.py"
    catalog = home.need("catalog_uri").removeprefix("jdbc:sqlite:")
    command = [sys.executable, str(script), str(home.home / "certificate.json")]
    command += ["--catalog", catalog]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    return "; ".join(failed) or ("holds" if done.returncode == 0 else done.stderr[-200:])


def letters(home: Settings) -> str:
    """How many dead letters their topic has, each origin counted once."""
    origins = origins_on_topic(home.need("bootstrap_servers"), home.need("dlq_topic"))
    return f"{len(set(origins)):,} origins"
