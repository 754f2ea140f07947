"""`python -m bench`: measure the speed goals, time a whole run, kill parts of a running stack."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.errors import OperationError, UsageError
from headgate.terminal.console import FORMATS, console

if TYPE_CHECKING:
    from bench.goals import Measurement, Size

SIZES = ("full", "tiny")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-o", "--output", type=click.Choice(FORMATS), default="text", help="How to print the data."
)
@click.option("--debug", is_flag=True, help="Show the trace of an error.")
def cli(output: str, debug: bool) -> None:
    """Measure speed against the goals, or kill parts of a running stack and compare.

    Run it with the project's interpreter in the root of the repository. Every command but `measure`
    has a make target: see `make help`.

    \b
    Examples:
      python -m bench run
      python -m bench run P9 P12
      python -m bench pipeline
      python -m bench -o json faults --kills 5
    """
    console.format = output
    console.debug = debug


@cli.command("run", short_help="measure all speed goals, or those named")
@click.argument("goals", nargs=-1, metavar="[GOAL]...")
@click.option(
    "--size",
    type=click.Choice(SIZES),
    default="full",
    show_default=True,
    help="tiny takes seconds per goal: it checks that a benchmark works and gives no figures.",
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
      python -m bench run
      python -m bench run P6 P7 --fresh
    """
    from bench.goals import Failure, choose_goals, render_rows
    from bench.run_goals import BenchRun, read_code, write_page
    from headgate.config.env_files import find_root

    if page and size == "tiny":
        raise UsageError(
            "a tiny run gives no figures for the page", fix="leave out --page or --size"
        )
    chosen = choose_goals(goals)
    root = find_root(Path.cwd())
    run = BenchRun(root, size, read_code(root), seconds)
    outcomes = run.run(chosen, fresh)
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


@cli.command(short_help="measure one goal at any size, without a result")
@click.argument("goal")
@click.argument("values", nargs=-1, metavar="[NAME=NUMBER]...")
@click.option("--size", type=click.Choice(SIZES), default="full", show_default=True)
@click.option(
    "--bootstrap", default="localhost:9092", show_default=True, help="Address of the broker."
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    help="Write the figures to this file, not to stdout.",
)
def measure(
    goal: str, values: tuple[str, ...], size: Size, bootstrap: str, report: Path | None
) -> None:
    """Measure one goal in this process, at any size, and keep no result.

    `run` starts this command for each goal and hands it the address of a broker. NAME=NUMBER
    replaces an argument of the benchmark, such as rows=20000.

    \b
    Examples:
      python -m bench measure P6 rows=20000 repeat=1
      python -m bench measure P9 --size tiny --bootstrap localhost:9092
    """
    from bench.goals import choose_goals

    # The exit leaves all blocks: the demo is stopped and temporary folders are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    (chosen,) = choose_goals([goal])
    arguments: dict[str, int | str] = dict(chosen.tiny) if size == "tiny" else {}
    arguments |= parse_values(values)
    if chosen.needs_broker:
        arguments["bootstrap"] = bootstrap
    function = getattr(importlib.import_module(chosen.module), chosen.function)
    measurement: Measurement = function(**arguments)
    figures = measurement.model_dump_json(indent=2) + "\n"
    if report:
        report.write_text(figures, encoding="utf-8")
    else:
        sys.stdout.write(figures)


def parse_values(values: Iterable[str]) -> dict[str, int]:
    """Arguments of a benchmark from texts such as `rows=20000`."""
    arguments: dict[str, int] = {}
    for value in values:
        name, _, number = value.partition("=")
        if not (name.isidentifier() and number.isdecimal()):
            raise UsageError(f"`{value}` is no argument of a benchmark", fix="write rows=20000")
        arguments[name] = int(number)
    return arguments


@cli.command(short_help="run other tools beside ours: same rows, same rules")
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of the table.")
@click.option("--rules", default=100, show_default=True, help="Number of rules.")
@click.option("--only", default="", metavar="ours,DQX", help="Run only these tools.")
@click.option("--seconds", default=600.0, show_default=True, help="Time limit of one tool.")
def peers(rows: int, rules: int, only: str, seconds: float) -> None:
    """Run DQX, sparkdq, cuallee, Soda and Great Expectations beside ours: same rows, same rules.

    Two tables are compared by datacompy, DQX, exceptAll and ours as well. Each tool gets an
    environment of its own, made on first use. Losses are shown like wins.

    \b
    Examples:
      python -m bench peers
      python -m bench peers --rows 300000 --only ours,DQX
    """
    from bench.peer_table import run_peers

    console.data(run_peers(rows, rules, only, seconds))


@cli.command(short_help="time the whole path once, under the active profile")
def pipeline() -> None:
    """Time the whole path under the active profile, from down to down.

    Embedded services run in a home of their own (.headgate/benchmark), which is emptied first.
    The result is benchmark_results/latest.json.

    \b
    Examples:
      python -m bench pipeline
    """
    from bench.timed_run import timed_run

    result = timed_run()
    console.data(result)


@cli.command(short_help="kill the engine and compare with an undisturbed run")
@click.option("--kills", default=20, show_default=True, help="How often the engine is killed.")
@click.option(
    "--seed",
    default=42,
    show_default=True,
    help="Decides what is sent and where each kill strikes.",
)
def faults(kills: int, seed: int) -> None:
    """Kill the engine at named points and compare the tables with an undisturbed run.

    A run that was interrupted goes on where it stopped: give the same command again.

    \b
    Examples:
      python -m bench faults --kills 20
    """
    from bench.faults.bronze import run_faults
    from headgate.config.settings import load_settings

    report = run_faults(load_settings(), kills, seed, console.say)
    console.done(f"{report.kills} kills left no trace in {report.records:,} records")
    console.data(report.comparisons)


@cli.command(short_help="stream bursts, kill broker and engine, compare with a batch run")
@click.option(
    "--bursts",
    type=click.IntRange(min=10),
    default=20,
    show_default=True,
    help="Number of bursts.",
)
@click.option("--seconds", default=300.0, show_default=True, help="How long the bursts go on.")
@click.option("--seed", default=42, show_default=True, help="Decides what is sent.")
def bursts(bursts: int, seconds: float, seed: int) -> None:
    """Stream bursts with silver and maintenance beside, kill broker and engine, and compare.

    Bronze, silver and dead letters must equal those of a batch run over the same topic, and the
    certificate must hold.

    \b
    Examples:
      python -m bench bursts
      python -m bench bursts --bursts 10 --seconds 100
    """
    from bench.faults.stream import run_bursts
    from headgate.config.settings import load_settings

    settings = load_settings()
    results = settings.build_dir / "bench"
    report = run_bursts(settings, bursts, seconds, results, seed, console.say)
    calm = report.played.calm
    console.done(
        f"{report.played.records:,} records in {bursts} bursts left no trace;"
        f" visible in bronze after {calm.p50} s (median), {calm.p95} s (p95)"
    )
    console.data(report)


@cli.command("reconcile-faults", short_help="reconcile while parts are killed, and compare")
@click.option("--small", is_flag=True, help="Short outages: a check, no figures.")
@click.option("--only", default="", metavar="cassandra,kafka", help="Cause only these faults.")
def reconcile_faults(small: bool, only: str) -> None:
    """Reconcile under load while Cassandra, Connect, Kafka and the engine are away in turn.

    Cassandra is away for 60 s, Connect, Kafka and the engine are killed. Every planted key must have
    its verdict in the end, each gap must be told by those who meet it, and all must come back by
    themselves: exit code 5 if not. The report is build/bench/reconcile_faults.json.

    \b
    Examples:
      python -m bench reconcile-faults
      python -m bench reconcile-faults --small --only cassandra
    """
    from bench.faults.reconcile.scenario import FAULTS, SMALL, render_text, run_reconcile_faults
    from headgate.config.settings import load_settings

    chosen = choose(only, FAULTS, "fault")
    settings = load_settings()
    results, pace = settings.build_dir / "bench", SMALL if small else None
    report = run_reconcile_faults(settings, results, pace, chosen, console.say)
    console.done(f"{report.keys:,} keys left as planted in {report.seconds:g} s")
    console.data(report, text=render_text(report))


def choose(only: str, known: Collection[str], noun: str) -> list[str]:
    """Those of the known names that a list such as `engine,kafka` names; all when it is empty."""
    named = [name.strip() for name in only.split(",") if name.strip()]
    if unknown := [name for name in named if name not in known]:
        raise UsageError(f"there is no {noun} {unknown[0]}", fix=f"choose from {', '.join(known)}")
    return [name for name in known if not named or name in named]


@cli.command("filter-faults", short_help="post events while parts are killed, and account for each")
@click.option("--small", is_flag=True, help="Fewer events, short pauses: a check, no figures.")
@click.option("--only", default="", metavar="engine,kafka", help="Kill only these parts.")
def filter_faults(small: bool, only: str) -> None:
    """Post events while engine, API, Connect, PostgreSQL and Kafka are killed one after another.

    Every event must be accounted for: in PostgreSQL's log, on the source topic, in the ledger, on the
    filters' topics; and each consumer must have had the effect of each of its events once: exit code
    5 if not. The report is build/bench/filter_faults.json.

    \b
    Examples:
      python -m bench filter-faults
      python -m bench filter-faults --small --only engine
    """
    from bench.faults.filters import FAULTS, SMALL, run_filter_faults
    from headgate.config.settings import load_settings
    from headgate.demo.filters import proof as filter_proof
    from headgate.demo.filters.stage import SOURCE
    from headgate.demo.own_home import SHORT_LIVED

    chosen = choose(only, FAULTS, "kill")
    settings = load_settings()
    if small:
        os.environ.setdefault("SPARK_JAVA_OPTIONS", SHORT_LIVED["SPARK_JAVA_OPTIONS"])
    results, pace = settings.build_dir / "bench", SMALL if small else None
    report = run_filter_faults(settings, results, pace, chosen, console.say)
    console.done(
        f"{report.events:,} events, {len(report.struck)} kills: each consumer had each of its events once"
    )
    console.data(report, text=filter_proof.text(report.proofs, report.outcomes, SOURCE))
