"""Compares a home whose engines were killed with an undisturbed home on the same topic: tables, certificate, dead letters."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass

from bench.faults.rig import BRONZE, SILVER, TopicRig, run_command
from headgate.certify.certificate import broken, run_certification, write
from headgate.certify.evidence import declared
from headgate.config.settings import Settings
from headgate.core.accounting.table_evidence import table_evidence
from headgate.core.kafka.reader import Stretch, committed_records
from headgate.core.kafka.topics import Topics
from headgate.core.lake.duckdb_reader import Lake, quoted
from headgate.core.sql.fragments import DEAD_LETTERS_TABLE

ORIGIN_HEADERS = ("headgate.topic", "headgate.partition", "headgate.offset")
HOLDS = "holds"


@dataclass(frozen=True)
class Comparison:
    """One thing that must be the same with and without kills."""

    what: str
    with_kills: str
    undisturbed: str

    @property
    def holds(self) -> bool:
        return self.with_kills == self.undisturbed


def compare_homes(rig: TopicRig, home: Settings) -> tuple[Comparison, ...]:
    """Finish the killed home, fill another one without a kill, and compare the two."""
    calm = rig.create_home("calm")
    shutil.rmtree(calm.home, ignore_errors=True)
    for each in (home, calm):
        for job in (BRONZE, SILVER):
            run_command(each, "job", "run", job)
    tables, expected = describe_tables(home), describe_tables(calm)
    letters, expected_letters = count_letters(home), count_letters(calm)
    return (
        *(Comparison(name, tables[name], expected[name]) for name in expected),
        Comparison("certificate", certify(home), HOLDS),
        Comparison("independent re-check", recheck_certificate(home), HOLDS),
        Comparison("dead letters on their topic", letters, expected_letters),
    )


def describe_tables(home: Settings) -> dict[str, str]:
    """Rows and content hash of each table."""
    dataset = declared(home, home.need("dataset"))
    own_letters = f"job = {quoted('bronze-' + dataset.name)}"
    filters = {dataset.bronze_table: "", dataset.silver_table: "", DEAD_LETTERS_TABLE: own_letters}
    with Lake.open(home) as lake:
        evidence = {name: table_evidence(lake, name, where) for name, where in filters.items()}
    return {
        name: f"{table.rows:,} rows, {table.content_hash}" if table else "no table"
        for name, table in evidence.items()
    }


def certify(home: Settings) -> str:
    certificate = run_certification(home)
    write(certificate, home.home / "certificate.json")
    return "; ".join(broken(certificate)) or HOLDS


def recheck_certificate(home: Settings) -> str:
    """What the script says that imports nothing of ours."""
    script = home.root / "scripts" / "recheck_certificate.py"
    catalog = home.need("catalog_uri").removeprefix("jdbc:sqlite:")
    command = [sys.executable, str(script), str(home.home / "certificate.json")]
    command += ["--catalog", catalog]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    return "; ".join(failed) or (HOLDS if done.returncode == 0 else done.stderr[-200:])


def count_letters(home: Settings) -> str:
    """Dead letters on their topic by distinct origin: one that was sent twice counts once."""
    bootstrap = home.need("bootstrap_servers")
    state = Topics(bootstrap).describe(home.need("dlq_topic"))
    letters = committed_records(bootstrap, Stretch.whole(state), quiet=True) if state else ()
    origins = {tuple(letter.headers.get(name, "") for name in ORIGIN_HEADERS) for letter in letters}
    return f"{len(origins):,} origins"
