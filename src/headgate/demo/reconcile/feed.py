"""`headgate feed pairs`: sends one wave of planted keys to both sides of a reconciliation."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from headgate.errors import UsageError
from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.demo.reconcile.keys import Phase
    from headgate.demo.reconcile.planting import Order, Planting, Sums
    from headgate.quality.spec.rule_set import RuleTable

KEYS = 20_000
PHASES = ("early", "first", "soon", "late")
# All versions of the first wave lie before the moment of planting.
BEFORE = timedelta(minutes=10)
EARLY_SENT = "early.sent"
ONPREM_TABLE = """\
CREATE OR REPLACE TABLE lake.{table} USING iceberg
AS SELECT * FROM parquet.`{file}`"""


@dataclass(frozen=True)
class PairsPlan:
    """Where the two sides of the table are."""

    topics: Mapping[Literal["onprem", "cloud"], str]
    cassandra: str
    iceberg: str | None
    contract: Path


@dataclass(frozen=True)
class Fed:
    """One wave: what was written, and what must be found in the end."""

    table: str
    phase: str
    rows: int
    messages: Mapping[str, int]
    folder: str
    elapsed_seconds: float
    planted: Sums


@click.command("pairs")
@click.option("--table", default="business", show_default=True, help="A rule table with rows.")
@click.option("--keys", type=click.IntRange(min=100), default=KEYS, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=42, show_default=True)
@click.option("--phase", type=click.Choice(PHASES), default="first", show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Where to note it.")
@click.option("--dry-run", is_flag=True, help="Write down what would be planted; send nothing.")
def feed_pairs(
    table: str, keys: int, seed: int, phase: str, out: Path | None, dry_run: bool
) -> None:
    """Plant keys on both sides of a reconciliation: rows, messages, and every kind of defect.

    Rows go into Cassandra and into the on-prem table of the lake, messages to the topics. The later
    waves belong to the first: `soon` brings what comes within the window, `late` what comes after
    it; `early` brings a few keys before the first. keys.parquet says of each key what must come of it.

    \b
    Examples:
      headgate feed pairs
      headgate feed pairs --keys 500 --seed 7
      headgate feed pairs --phase late
      headgate -o json feed pairs --dry-run
    """
    done = fed(table, cast("Phase", phase), keys, seed, out=out, dry_run=dry_run)
    console.data(done, text(done, dry_run=dry_run))


def fed(
    table: str,
    phase: Phase,
    keys: int = KEYS,
    seed: int = 42,
    *,
    out: Path | None = None,
    dry_run: bool = False,
) -> Fed:
    """One wave under the settings in force."""
    from headgate.config.settings import load_settings
    from headgate.demo.reconcile.planting import read_sums, write_oracle

    settings = load_settings()
    begun = time.monotonic()
    folder = out or settings.home / "data" / "pairs"
    plan = plan_of(settings, table)
    waves = waves_of(phase, folder)
    planting = planting_of(plan, keys, seed, None if "early" in waves else folder)
    sums = write_oracle(folder, planting) if "early" in waves else read_sums(folder)
    rows, messages = (0, {}) if dry_run else sent(settings, plan, planting, waves, folder)
    if not dry_run:
        _note_early(phase, folder / EARLY_SENT)
    seconds = round(time.monotonic() - begun, 2)
    return Fed(table, phase, rows, messages, str(folder), seconds, sums)


def waves_of(phase: Phase, folder: Path) -> tuple[Phase, ...]:
    """What is sent now: the first wave brings the early keys too, unless they have gone before."""
    gone_before = (folder / EARLY_SENT).is_file()
    return ("early", "first") if phase == "first" and not gone_before else (phase,)


def _note_early(phase: Phase, early: Path) -> None:
    """Remember that the early keys are out until the first wave has followed them."""
    if phase == "early":
        early.touch()
    elif phase == "first":
        early.unlink(missing_ok=True)


def plan_of(settings: Settings, table: str) -> PairsPlan:
    """Both sides as the rule set declares them."""
    from headgate.quality.compile.resolve import open_rules

    declared: RuleTable = open_rules(settings, table).table
    reconcile = declared.reconcile
    cloud = reconcile.rows.cloud if reconcile else None
    if reconcile is None or reconcile.contract is None or cloud is None or not cloud.cassandra:
        raise UsageError(
            f"pairs of {table} cannot be planted",
            why="it needs `reconcile` with a contract and `rows: {cloud: {cassandra: …}}`",
            fix="take the table business of rules/topic1.yml",
        )
    onprem = reconcile.rows.onprem
    topics = {side: str(source.topic) for side, source in declared.sources.items()}
    return PairsPlan(
        topics=cast("Mapping[Literal['onprem', 'cloud'], str]", topics),
        cassandra=cloud.cassandra,
        iceberg=onprem.iceberg if onprem else None,
        contract=settings.root / reconcile.contract,
    )


def planting_of(plan: PairsPlan, keys: int, seed: int, folder: Path | None) -> Planting:
    """What is ordered here; a later wave belongs to what was noted in the folder."""
    from headgate.demo.reconcile.planting import Order, read_sums

    order = read_sums(folder).order if folder else Order(keys, seed, begin())
    return _planting(plan.contract, order)


@cache
def _planting(contract: Path, order: Order) -> Planting:
    """Kept for the waves that follow: all rows of it are drawn and hashed."""
    from headgate.demo.reconcile.keys import hash_by
    from headgate.demo.reconcile.planting import Planting
    from headgate.hashing.contract import load_contract

    return Planting(order, hash_by(load_contract(contract).value))


def begin() -> datetime:
    """Whole milliseconds, as Cassandra keeps them."""
    from headgate.core.ledger.ops_store import utc_now

    now = utc_now() - BEFORE
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def sent(
    settings: Settings, plan: PairsPlan, planting: Planting, waves: Sequence[Phase], folder: Path
) -> tuple[int, dict[str, int]]:
    """The rows first, so that whoever hears a message finds the row."""
    from headgate.core.kafka.producer import TopicWriter
    from headgate.core.kafka.topics import bootstrap_of
    from headgate.demo.reconcile import planting as sending
    from headgate.reconcile.cassandra.session import open_session

    writer, rows, messages = TopicWriter(bootstrap_of(settings)), 0, Counter[str]()
    writer.require(plan.topics.values())
    with open_session(settings) as cassandra:
        if "early" in waves:
            sending.prepare(cassandra, plan.cassandra)
            console.say("rows into the on-prem table …")
            onprem_table(settings, plan, folder)
        console.say(f"rows into {plan.cassandra} …")
        places = sending.Places(plan.cassandra, plan.topics)
        for phase in waves:
            written, said = sending.send_wave(cassandra, writer, places, planting, phase)
            rows, messages = rows + written, messages + said
    return rows, dict(messages)


def onprem_table(settings: Settings, plan: PairsPlan, folder: Path) -> None:
    """The rows on-prem as a table of the lake, made by the running engine."""
    from headgate.core.engine.connect import connect
    from headgate.core.lake.spark import sql
    from headgate.demo.reconcile.planting import ONPREM_FILE

    if plan.iceberg is None:
        return
    schema = plan.iceberg.partition(".")[0]
    file = (folder / ONPREM_FILE).resolve()
    with connect(settings) as session:
        sql(session, f"CREATE NAMESPACE IF NOT EXISTS lake.{schema}").collect()
        sql(session, ONPREM_TABLE.format(table=plan.iceberg, file=file)).collect()


def text(done: Fed, *, dry_run: bool) -> str:
    """The report for a person."""
    p = done.planted
    told = ", ".join(f"{n:,} to {topic}" for topic, n in done.messages.items()) or "no messages"
    head = f"Wave `{done.phase}` of {p.keys:,} keys, seed {p.seed}: {done.rows:,} rows, {told}"
    if dry_run:
        head = f"{p.keys:,} keys, seed {p.seed}; nothing was sent"
    counts = {"Planted": p.roles, "To be found": p.statuses, "Dead letters": p.letters}
    blocks = [
        f"{title}\n" + "\n".join(f"  {name:<18}{n:>9,}" for name, n in found.items())
        for title, found in counts.items()
    ]
    return "\n\n".join([head, *blocks, f"Each key stands in {done.folder}/keys.parquet"])
