"""`headgate bench`: figures against the goals, a timed whole run, and killed engines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.cli.console import console
from headgate.errors import OperationError, UsageError

if TYPE_CHECKING:
    from headgate.checks.goals import Size


@click.group()
def group() -> None:
    """Measure speed against the goals, or kill the engine and compare.

    \b
    Examples:
      headgate bench run
      headgate bench run P9 P12
      headgate bench pipeline
    """


@group.command("run")
@click.argument("goals", nargs=-1, metavar="[GOAL]...")
@click.option(
    "--size",
    type=click.Choice(("full", "tiny")),
    default="full",
    show_default=True,
    help="tiny ends in seconds a goal: it shows that a benchmark works and gives no figures.",
)
@click.option("--fresh", is_flag=True, help="Also measure goals that have a result of this code.")
@click.option(
    "--seconds", default=900.0, show_default=True, metavar="N", help="Time limit of one goal."
)
@click.option("--page", is_flag=True, help="Also write the table into docs/benchmarks.md.")
def run_goals(goals: tuple[str, ...], size: Size, fresh: bool, seconds: float, page: bool) -> None:
    """Measure all goals, or those named, and print the table of what was met and missed.

    Each goal is measured in a process of its own. Its result is kept in build/bench with the commit
    and the date: a run that was broken off goes on where it stopped. A goal that is missed is no
    failure; the exit code is 1 if a benchmark breaks or exceeds its time limit.

    \b
    Examples:
      headgate bench run
      headgate bench run P6 P7 --fresh
    """
    from headgate.checks.goals import Failure, choose_goals, render_rows
    from headgate.cli.bench_run import BenchRun, read_code, write_page
    from headgate.profile import find_root

    if page and size == "tiny":
        raise UsageError(
            "a tiny run gives no figures for the page", fix="leave out --page or --size"
        )
    root = find_root(Path.cwd())
    run = BenchRun(root, size, read_code(root), seconds)
    outcomes = run.run(choose_goals(goals), fresh)
    run.write_table(outcomes)
    console.data(render_rows(outcomes))
    if page:
        write_page(root, run.read_results())
    if failures := [outcome for outcome in outcomes if isinstance(outcome, Failure)]:
        raise OperationError(
            f"no figures for {', '.join(failure.goal.id for failure in failures)}",
            why="; ".join(f"{failure.goal.id}: {failure.reason}" for failure in failures),
            fix=f"read the logs in {run.folder / 'logs'}, then run the same command again",
        )


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
    results = settings.build_dir / "bench"
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
    themselves: exit code 5 if not. The report is build/bench/reconcile_faults.json.

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
        settings.build_dir / "bench",
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
    5 if not. The report is build/bench/filter_faults.json.

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
        settings.build_dir / "bench",
        SMALL if small else None,
        [fault for fault in FAULTS if not named or fault in named],
        console.say,
    )
    console.done(
        f"{report.events:,} events, {len(report.struck)} kills: each consumer had each of its events once"
    )
    console.data(report, text=filter_proof.text(report.proofs, report.outcomes, SOURCE))
