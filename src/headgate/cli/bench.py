"""`headgate bench`: figures against the goals, a timed whole run, and killed engines."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.cli.console import console
from headgate.errors import OperationError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.checks.goals import Machine, Measured, Results
    from headgate.cli.steps import Steps


@dataclass(frozen=True)
class Bench:
    """A script that measures one goal; `quick` are its arguments when there is little time."""

    goal: str
    script: str
    needs_broker: bool
    quick: tuple[str, ...]
    given: tuple[str, ...] = ()


_QUICK_RULES = ("--rows", "100000", "--repeat", "1")
BENCHES = (
    *(
        Bench(goal, "quality.py", goal == "P4", _QUICK_RULES, ("--goal", goal))
        for goal in ("P1", "P2", "P3", "P4")
    ),
    Bench("P5", "filters.py", False, ("--rows", "50000", "--repeat", "1"), ("--goal", "P5")),
    Bench("P6", "compare.py", False, ("--rows", "100000", "--repeat", "1")),
    Bench("P7", "reconcile.py", True, ("--pairs", "60000", "--batch", "20000", "--warm", "1")),
    Bench("P8", "bronze.py", True, ("--rows", "50000", "--repeat", "1")),
    Bench("P9", "generator.py", True, ("--rows", "100000", "--repeat", "1")),
    Bench("P10", "hashing.py", False, ("--rows", "100000", "--repeat", "1")),
    Bench("P11", "demo.py", False, ("--rows", "5000")),
    Bench("P12", "help.py", False, ("--repeat", "3")),
    Bench("P13", "router.py", True, ("--filters", "50", "--rounds", "4")),
    Bench("P14", "filters.py", False, ("--rows", "20000", "--repeat", "1"), ("--goal", "P14")),
    Bench("P15", "growth.py", True, ("--rows", "5000", "--repeat", "1")),
)


@click.group()
def group() -> None:
    """Measure speed against the goals, or kill the engine and compare.

    \b
    Examples:
      headgate bench run
      headgate bench run --only P9,P12 --quick
      headgate bench pipeline
    """


@group.command("run")
@click.option("--only", default="", metavar="P8,P9", help="These goals alone.")
@click.option("--quick", is_flag=True, help="Smaller sizes, fewer repeats: a look, no figure.")
@click.option("--page", is_flag=True, help="Also write the table into docs/benchmarks.md.")
def run_benches(only: str, quick: bool, page: bool) -> None:
    """Measure every goal and print the table; losses are shown like wins.

    Results are kept in bench/results. Nothing here is a test: the exit code is 0 either way.
    """
    from headgate.checks.goals import Result, rows
    from headgate.profile import find_root

    root = find_root(Path.cwd())
    wanted = chosen(only)
    folder = root / "bench" / "results"
    host = machine()

    def kept(found: Measured) -> None:
        result = Result(at=datetime.now(UTC), quick=quick, machine=host, measured=found)
        keep(folder, read_results(folder).with_result(result))

    measure(root, wanted, quick, kept)
    results = read_results(folder)
    console.data(rows(results.results[bench.goal] for bench in wanted))
    if page:
        write_page(root, results)


def chosen(only: str) -> tuple[Bench, ...]:
    names = [name.strip().upper() for name in only.split(",") if name.strip()]
    known = {bench.goal: bench for bench in BENCHES}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(
            f"no measurement of {', '.join(unknown)} is built", fix=f"use {', '.join(known)}"
        )
    return tuple(known[name] for name in names) if names else BENCHES


def measure(
    root: Path, wanted: tuple[Bench, ...], quick: bool, kept: Callable[[Measured], None]
) -> None:
    """Each script in a process of its own; those that need a broker share one."""
    from headgate.cli.own_home import (
        alone,
        embedded_environment,
        emptied,
        replaced,
        stopped_on_failure,
    )
    from headgate.cli.steps import Steps, command
    from headgate.settings import load_settings

    home = root / ".headgate" / "bench"
    with alone(home), replaced(embedded_environment(root, home, os.environ)):
        emptied(home)
        steps = Steps(home / "logs", "bench", width=8)
        with stopped_on_failure(home):
            if any(bench.needs_broker for bench in wanted):
                with steps.step("broker"):
                    command("local", "up", "--only", "broker")
            bootstrap = load_settings(root).bootstrap_servers or ""
            for bench in wanted:
                kept(_measured(root, bench, bootstrap, quick, steps))
        command("local", "down")


def _measured(root: Path, bench: Bench, bootstrap: str, quick: bool, steps: Steps) -> Measured:
    from headgate.checks.goals import Measured, shown

    broker = (bootstrap,) if bench.needs_broker else ()
    given = (*broker, *bench.given, *(bench.quick if quick else ()))
    with steps.step(bench.goal) as step:
        done = _script(root / "bench" / bench.script, given, step.log.file)
        found = Measured.model_validate_json(done)
        (root / "bench" / "results").mkdir(parents=True, exist_ok=True)
        (root / "bench" / "results" / f"{bench.goal}.json").write_text(done)
        figures = (f"{line.what}: {shown(line.figure, line.unit)}" for line in found.lines)
        step.words = "; ".join(figures)
    return found


def _script(script: Path, given: tuple[str, ...], log: Path) -> str:
    with log.open("a") as said:
        done = subprocess.run(
            [sys.executable, str(script), *given],
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            check=False,
        )
    if done.returncode:
        raise OperationError(f"{script.name} failed", why=f"exit code {done.returncode}")
    return done.stdout


def read_results(folder: Path) -> Results:
    from headgate.checks.goals import Results

    file = folder / "latest.json"
    return Results.model_validate_json(file.read_bytes()) if file.is_file() else Results()


def keep(folder: Path, results: Results) -> None:
    """Both forms after each goal, so that an interrupted run keeps what it found."""
    from headgate.checks.goals import rows
    from headgate.cli.console import as_table

    (folder / "latest.json").write_text(results.model_dump_json(indent=2) + "\n")
    table = as_table(rows(results.results.values()), markdown=True)
    (folder / "latest.md").write_text(table + "\n", encoding="utf-8")


def write_page(root: Path, results: Results) -> None:
    from headgate.checks.goals import page_with, rows, taken_on
    from headgate.cli.console import as_table

    page = root / "docs" / "benchmarks.md"
    found = tuple(results.results.values())
    table = f"{taken_on(found)}\n\n{as_table(rows(found), markdown=True)}"
    page.write_text(page_with(page.read_text(encoding="utf-8"), table), encoding="utf-8")
    console.done(f"written into {page.relative_to(root)}")


def machine() -> Machine:
    import platform

    from headgate.checks.goals import Machine
    from headgate.engine.java import find_java

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Machine(
        cores=os.cpu_count() or 1,
        processor=_processor(),
        memory_gib=round(memory, 1),
        java=f"Java {find_java().version}",
        python=platform.python_version(),
        load=round(os.getloadavg()[0], 2),
    )


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


@group.command()
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--rules", default=100, show_default=True)
@click.option("--only", default="", metavar="ours,DQX", help="These alone.")
@click.option("--seconds", default=600.0, show_default=True, help="The most for one of them.")
def peers(rows: int, rules: int, only: str, seconds: float) -> None:
    """Run DQX, sparkdq, cuallee, Soda and Great Expectations beside ours: same rows, same rules.

    Two tables are compared by datacompy, DQX, exceptAll and ours as well. Each gets an environment of its own, made on first use. Losses are shown like wins.
    """
    from headgate.cli.bench_peers import run_peers

    console.data(run_peers(rows, rules, only, seconds))


@group.command()
def pipeline() -> None:
    """Time the whole path under the active profile, from down to down.

    Embedded services run in a home of their own (.headgate/benchmark), which is emptied first.
    The result is benchmark_results/latest.json.
    """
    from headgate.cli.timed_run import timed_run

    result = timed_run()
    console.data(result)


@group.command()
@click.option("--kills", default=20, show_default=True, help="How often the engine is killed.")
@click.option("--seed", default=42, show_default=True, help="Makes the run: what, when and where.")
def faults(kills: int, seed: int) -> None:
    """Kill the engine at named points and compare the tables with an undisturbed run.

    A run that was interrupted goes on where it stopped: give the same command again.
    """
    from headgate.checks.faults import run_faults
    from headgate.settings import load_settings

    report = run_faults(load_settings(), kills, seed, console.say)
    console.done(f"{report.kills} kills left no trace in {report.records:,} records")
    console.data(report.comparisons)


@group.command()
@click.option("--bursts", type=click.IntRange(min=10), default=20, show_default=True)
@click.option("--seconds", default=300.0, show_default=True, help="How long the bursts go on.")
@click.option("--seed", default=42, show_default=True, help="Makes the run: what is sent.")
def bursts(bursts: int, seconds: float, seed: int) -> None:
    """Stream bursts with silver and maintenance beside, kill broker and engine, and compare.

    Bronze, silver and dead letters must equal those of a batch run over the same topic, and the
    certificate must hold.
    """
    from headgate.checks.bursts import run_bursts
    from headgate.settings import load_settings

    settings = load_settings()
    results = settings.root / "bench" / "results"
    report = run_bursts(settings, bursts, seconds, results, seed, console.say)
    calm = report.played.calm
    console.done(
        f"{report.played.records:,} records in {bursts} bursts left no trace;"
        f" visible in bronze after {calm.p50} s (median), {calm.p95} s (p95)"
    )
    console.data(report)


@group.command("reconcile-faults")
@click.option("--small", is_flag=True, help="Short outages: a look, no figure.")
@click.option("--only", default="", metavar="cassandra,kafka", help="These faults alone.")
def reconcile_faults(small: bool, only: str) -> None:
    """Reconcile under load while Cassandra, Connect, Kafka and the engine are away in turn.

    Cassandra is away for 60 s, Connect, Kafka and the engine are killed. Every planted key must have
    its verdict in the end, each gap must be told by those who meet it, and all must come back by
    themselves: exit code 5 if not. The report is bench/results/reconcile_faults.json.

    \b
    Examples:
      headgate bench reconcile-faults
      headgate bench reconcile-faults --small --only cassandra
    """
    from headgate.checks.reconcile_faults import SMALL, report_text, run_reconcile_faults
    from headgate.checks.reconcile_faults_play import FAULTS
    from headgate.settings import load_settings

    named = [name.strip() for name in only.split(",") if name.strip()]
    if unknown := [name for name in named if name not in FAULTS]:
        raise UsageError(f"there is no fault {unknown[0]}", fix=f"choose from {', '.join(FAULTS)}")
    settings = load_settings()
    report = run_reconcile_faults(
        settings,
        settings.root / "bench" / "results",
        SMALL if small else None,
        [fault for fault in FAULTS if not named or fault in named],
        console.say,
    )
    console.done(f"{report.keys:,} keys left as planted in {report.seconds:g} s")
    console.data(report, text=report_text(report))


@group.command("filter-faults")
@click.option("--small", is_flag=True, help="Fewer events and short pauses: a look, no figure.")
@click.option("--only", default="", metavar="engine,kafka", help="These kills alone.")
def filter_faults(small: bool, only: str) -> None:
    """Post events while engine, API, Connect, PostgreSQL and Kafka are killed one after another.

    Every event must be accounted for: in PostgreSQL's log, on the source topic, in the ledger, on the
    filters' topics; and each consumer must have had the effect of each of its events once: exit code
    5 if not. The report is bench/results/filter_faults.json.

    \b
    Examples:
      headgate bench filter-faults
      headgate bench filter-faults --small --only engine
    """
    from headgate.checks import filter_proof
    from headgate.checks.filter_faults import SMALL, run_filter_faults
    from headgate.checks.filter_faults_play import FAULTS
    from headgate.checks.filter_stage import SOURCE
    from headgate.cli.demo import SHORT_LIVED
    from headgate.settings import load_settings

    named = [name.strip() for name in only.split(",") if name.strip()]
    if unknown := [name for name in named if name not in FAULTS]:
        raise UsageError(f"there is no kill {unknown[0]}", fix=f"choose from {', '.join(FAULTS)}")
    settings = load_settings()
    if small:
        os.environ.setdefault("SPARK_JAVA_OPTIONS", SHORT_LIVED["SPARK_JAVA_OPTIONS"])
    report = run_filter_faults(
        settings,
        settings.root / "bench" / "results",
        SMALL if small else None,
        [fault for fault in FAULTS if not named or fault in named],
        console.say,
    )
    console.done(
        f"{report.events:,} events, {len(report.struck)} kills: each consumer had each of its events once"
    )
    console.data(report, text=filter_proof.text(report.proofs, report.outcomes, SOURCE))
