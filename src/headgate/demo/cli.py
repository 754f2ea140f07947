"""`headgate demo`: sends sample data through the whole pipeline, certifies every record, shows the counts, stops."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.app import DEMOS
from headgate.demo.own_home import (
    SHORT_LIVED,
    alone,
    embedded_environment,
    emptied,
    replaced,
    stopped_on_failure,
)
from headgate.terminal.console import console
from headgate.terminal.lazy_group import LazyCommands

if TYPE_CHECKING:
    from headgate.demo.steps import Certificate, Marts, Model, Sample
    from headgate.terminal.steps import StepReport


@dataclass(frozen=True)
class Flow:
    """Counts along the path of one dataset; `planted_*` are what the sample maker put in."""

    file: str
    rows: int
    topic: str
    produced: int
    bronze_table: str
    bronze: int
    dead_letters: int
    tombstones: int
    silver_table: str
    silver: int
    filtered: int
    duplicates: int
    models: int
    tests: int
    marts: Mapping[str, int]
    planted_bad: int
    planted_duplicates: int
    planted_filtered: int


def render_flow(flow: Flow) -> str:
    """The picture; its numbers stand in one column whatever the names are."""
    names = (flow.file, flow.topic, flow.bronze_table, flow.silver_table, *flow.marts)
    width = max(len("  ├─► dead letters"), *(len(name) + 6 for name in names)) + 2
    digits = max(len(f"{n:,}") for n in (flow.rows, flow.produced, flow.bronze, flow.silver))

    def line(head: str, count: int, words: str = "") -> str:
        return f"  {head:<{width}}{count:>{digits},}  {words}".rstrip()

    lines = [
        line(flow.file, flow.rows, "rows in the file"),
        "    │ generate",
        line(flow.topic, flow.produced, "records on the topic"),
        "    │ bronze",
        line("  ├─► dead letters", flow.dead_letters, _planted(flow.planted_bad)),
        line("  ├─► tombstones", flow.tombstones),
        line(flow.bronze_table, flow.bronze, "rows, raw and complete"),
        "    │ silver",
        line("  ├─► filtered", flow.filtered, _planted(flow.planted_filtered)),
        line("  ├─► duplicates", flow.duplicates, _planted(flow.planted_duplicates)),
        line(flow.silver_table, flow.silver, "rows, clean and unique"),
        f"    │ dbt: {flow.models} models, {flow.tests} tests passed",
        *(
            line(f"  {_corner(i, flow)} {name}", n)
            for i, (name, n) in enumerate(flow.marts.items())
        ),
    ]
    return "\n".join(lines)


def _planted(count: int) -> str:
    return f"({count:,} planted)"


def _corner(index: int, flow: Flow) -> str:
    return "└─►" if index == len(flow.marts) - 1 else "├─►"


ROWS = 50_000
DATA_FILE = "events.parquet"


@dataclass(frozen=True)
class DemoReport:
    """One demo: its steps, its counts, and the proof."""

    home: str
    seconds: float
    fetch_seconds: float
    peak_memory_mib: int | None
    certificate: str
    statements_rechecked: int
    steps: tuple[StepReport, ...]
    flow: Flow


@click.group("demo", cls=LazyCommands, lazy=DEMOS, invoke_without_command=True)
@click.option("--rows", type=click.IntRange(min=100), default=ROWS, show_default=True)
@click.option("--dataset", metavar="NAME", envvar="DATASET", help="A dataset with a sample.yml.")
@click.option("--keep-running", is_flag=True, help="Leave broker and engine running at the end.")
@click.pass_context
def group(context: click.Context, rows: int, dataset: str | None, keep_running: bool) -> None:
    """Run the whole path on sample data: checked, certified, then stopped.

    Everything stands in .headgate/demo, which is emptied first; your own data and settings are
    neither read nor changed.

    \b
    Examples:
      headgate demo
      headgate demo --dataset orders
      headgate -o json demo --rows 5000
      headgate demo quality
      headgate demo reconcile
      headgate demo filters
    """
    if context.invoked_subcommand:
        return
    from headgate.config.env_files import find_root
    from headgate.pipeline.generator.declaration import find_sample

    root = find_root(Path.cwd())
    home = root / ".headgate" / "demo"
    if dataset:
        find_sample(root, dataset)
    with alone(home), replaced(demo_environment(root, home, os.environ, dataset)):
        report = run(root, home, rows, keep_running)
    console.data(report, text=render_summary(report, root))


def run(root: Path, home: Path, rows: int, keep_running: bool) -> DemoReport:
    """Take every step; whatever happens, nothing is left running unless that is asked for."""
    from headgate.demo.steps import NAME_WIDTH, Walk
    from headgate.local.process import PeakMemory
    from headgate.terminal.steps import Steps

    console.say(f"Headgate demo: {rows:,} events from a Parquet file to certified marts\n")
    emptied(home)
    begun = time.monotonic()
    steps = Steps(home / "logs", "demo", NAME_WIDTH)
    walk = Walk(steps, root)
    file = home / "certificates" / "demo.json"
    with PeakMemory() as memory:
        with stopped_on_failure(home):
            sample = walk.sample(rows)
            os.environ["DLQ_MAX"] = str(sample.planted.bad)
            walk.settings()
            fetched = walk.fetch()
            walk.up()
            walk.topics()
            walk.generate()
            walk.process("bronze")
            walk.process("silver")
            walk.wait()
            marts = walk.marts()
            walk.validate()
            certificate = walk.certify(file)
            held = walk.recheck(file, home / "catalog.db")
        if not keep_running:
            walk.down()
    return DemoReport(
        home=str(home),
        seconds=round(time.monotonic() - begun - fetched, 1),
        fetch_seconds=round(fetched, 1),
        peak_memory_mib=memory.peak // 2**20 if memory.peak else None,
        certificate=str(file),
        statements_rechecked=held,
        steps=tuple(steps.taken),
        flow=flow_of(sample, certificate, marts),
    )


def flow_of(sample: Sample, certificate: Certificate, marts: Marts) -> Flow:
    account, planted = certificate.datasets[0], sample.planted
    models = [model for model in marts.models if model.kind == "model"]
    return Flow(
        file=Path(sample.file).name,
        rows=planted.rows,
        topic=account.topic,
        produced=account.sums.read,
        bronze_table=account.tables["bronze"].name,
        bronze=account.sums.accepted,
        dead_letters=account.sums.refused,
        tombstones=account.sums.tombstones,
        silver_table=account.tables["silver"].name,
        silver=account.sums.kept,
        filtered=account.sums.filtered,
        duplicates=account.sums.duplicates,
        models=len(models),
        tests=marts.passed,
        marts={m.name: m.rows or 0 for m in last_models(models)},
        planted_bad=planted.bad,
        planted_duplicates=planted.duplicates,
        planted_filtered=planted.filtered,
    )


def last_models(models: Sequence[Model]) -> list[Model]:
    """The marts; a dataset that has none yet ends in its staging model."""
    return [m for m in models if m.folder == "marts"] or [m for m in models if m.rows is not None]


def render_summary(report: DemoReport, root: Path) -> str:
    """The summary for a person."""
    from headgate.terminal.steps import took

    f = report.flow
    home = Path(report.home).relative_to(root)
    certificate = Path(report.certificate).relative_to(root)
    total = took(report.seconds, report.fetch_seconds, report.peak_memory_mib)
    return f"""
{render_flow(f)}

Every record is accounted for
  {f.produced:,} produced = {f.bronze:,} bronze + {f.dead_letters:,} dead letters + {f.tombstones:,} tombstones
  {f.bronze:,} bronze = {f.silver:,} silver + {f.filtered:,} filtered + {f.duplicates:,} duplicates
  certificate: {certificate}
  an independent script agrees: all {report.statements_rechecked} statements hold
  {total}

Where to look next
  {home / "dbt.duckdb"!s:<34}the marts, for any DuckDB client
  {home / "logs"!s:<34}what each step and service said
  export HEADGATE_HOME={shlex.quote(str(home))}
  .venv/bin/headgate local up       broker and engine on these data again
  .venv/bin/headgate ledger show    what became of every offset
  .venv/bin/headgate lake count     rows of bronze and silver
  make help                         everything else"""


def demo_environment(
    root: Path, home: Path, environ: Mapping[str, str], dataset: str | None
) -> dict[str, str]:
    """The shipped profile and its dataset, or another one with what goes with its name."""
    from headgate.config.env_files import values_of

    shipped = embedded_environment(root, home, environ)
    data = {"HOST_DATA_DIR": str(home / "data"), "DATA_PATH": f"/data/{DATA_FILE}"}
    if dataset and dataset != shipped.get("DATASET"):
        data = {"DATASET": dataset, **values_of(dataset), **data}
    return {**SHORT_LIVED, **shipped, **data}
