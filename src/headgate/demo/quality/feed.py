"""`headgate feed rules`: sends rows of a rule table to its topics with a known number of every defect."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from headgate.errors import UsageError
from headgate.quality.compile.resolve import open_rules
from headgate.terminal.console import console

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.declarations.errors import Declared
    from headgate.demo.quality.declaration import RuleFeed
    from headgate.demo.quality.planting import Feeding, Order, Planted
    from headgate.quality.compile.resolve import JudgedTable
    from headgate.quality.spec.rule_set import RuleTable, Side

ROWS = 10_000
SIDES = ("both", "onprem", "cloud")


@dataclass(frozen=True)
class Fed:
    """What was sent, and what must be found again."""

    sent: int
    elapsed_seconds: float
    planted: Planted


@click.command("rules")
@click.argument("table")
@click.option("--rows", type=click.IntRange(min=1), default=ROWS, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=42, show_default=True)
@click.option("--share", "shares", multiple=True, metavar="DEFECT=N", help="Another share.")
@click.option("--side", type=click.Choice(SIDES), default="both", show_default=True)
@click.option("--start", metavar="TIME", help="The first event time. Default: they end now.")
@click.option("--dry-run", is_flag=True, help="Say what would be planted, and send nothing.")
def feed_rules(
    table: str,
    rows: int,
    seed: int,
    shares: tuple[str, ...],
    side: str,
    start: str | None,
    dry_run: bool,
) -> None:
    """Send rows of a rule table to its topics, with a known number of every defect.

    rules/feed/<table>.yml declares the rows and the defects. Which row has which defect depends on
    the seed alone; another seed makes other rows with other keys. Topics are made when they are
    not there. The counts say what the job must find once both sides are sent.

    \b
    Examples:
      headgate feed rules customer
      headgate feed rules customer --rows 100000 --seed 7 --share changed_in_the_cloud=0.2
      headgate -o json feed rules orders --dry-run
    """
    given = _moment(start) if start else None
    done = fed(table, rows, seed, shares=shares, side=side, start=given, dry_run=dry_run)
    console.data(done, words(done, side, dry_run=dry_run))


def fed(
    table: str,
    rows: int,
    seed: int,
    *,
    shares: Iterable[str] = (),
    side: str = "both",
    start: datetime | None = None,
    dry_run: bool = False,
) -> Fed:
    """Send the rows; what was planted is counted before the first of them leaves."""
    from headgate.config.settings import load_settings

    settings = load_settings()
    judged = open_rules(settings, table)
    feed = open_feed(settings, judged).value
    order = order_of(feed, judged, rows, seed, shares, start)
    feeding = feeding_of(settings, feed, judged, order)
    planted = feeding.planted()
    begun = time.monotonic()
    sent = 0 if dry_run else send(settings, judged.table, feeding, side, planted)
    return Fed(sent, round(time.monotonic() - begun, 2), planted)


def open_feed(settings: Settings, judged: JudgedTable) -> Declared[RuleFeed]:
    """The feed of a rule table; refused with all faults when they do not fit."""
    from headgate.demo.quality.declaration import find_feed, load_feed, require_fit

    feed = load_feed(find_feed(settings.root, judged.table.name))
    require_fit(feed, judged)
    return feed


def order_of(
    feed: RuleFeed,
    judged: JudgedTable,
    rows: int,
    seed: int,
    shares: Iterable[str],
    start: datetime | None,
) -> Order:
    from headgate.demo.quality.planting import Order, window_of

    begin = start or feed.event_time.start or datetime.now(UTC) - feed.event_time.span
    if begin.tzinfo is None:
        begin = begin.replace(tzinfo=UTC)
    if start is None:
        begin = window_of(begin, judged.rule_set.metrics.window)
    given = dict(_share(text, feed) for text in shares)
    total = sum(given.get(defect.name, defect.share) for defect in feed.defects)
    if total > 1:
        raise UsageError(
            f"the shares sum to {total:g}", why="a row has one defect", fix="choose smaller ones"
        )
    return Order(rows, seed, begin, given)


def feeding_of(settings: Settings, feed: RuleFeed, judged: JudgedTable, order: Order) -> Feeding:
    from headgate.demo.quality.planting import Feeding
    from headgate.pipeline.generator.declaration import find_sample, load_sample

    sample = load_sample(find_sample(settings.root, feed.dataset)).value if feed.dataset else None
    return Feeding(feed, judged, order, sample)


def send(
    settings: Settings, table: RuleTable, feeding: Feeding, side: str, planted: Planted
) -> int:
    """Send what goes to these sides; the number of messages, all of them acknowledged."""
    from headgate.core.kafka.producer import TopicWriter
    from headgate.core.kafka.topics import bootstrap_of

    bootstrap = bootstrap_of(settings)
    create_topics(bootstrap, table)
    writer = TopicWriter(bootstrap)
    topics: dict[Side, str] = {
        name: str(source.topic) for name, source in table.sides.items() if side in ("both", name)
    }
    total = sum(planted.messages[topic] for topic in topics.values())
    with console.progress(f"messages of {table.name}", total) as progress:
        for block in feeding.blocks():
            for name, topic in topics.items():
                messages = block[name]
                writer.send(topic, [m.value for m in messages], [m.key for m in messages])
                progress.advance(len(messages))
        writer.flush()
    return total


def create_topics(bootstrap: str, table: RuleTable) -> None:
    from headgate.cli.topics import DLQ_DAYS, TOPIC_DAYS
    from headgate.core.kafka.topics import Topics, TopicSpec

    topics = Topics(bootstrap)
    topics.need()
    for source in table.sources.values():
        topic = str(source.topic)
        letters = source.dlq_topic or f"{topic}.dlq"
        topics.create([TopicSpec(topic, 3, TOPIC_DAYS), TopicSpec(letters, 1, DLQ_DAYS)])


def words(fed: Fed, side: str, *, dry_run: bool) -> str:
    """The report for a person."""
    p = fed.planted
    verb = "To send" if dry_run else "Sent"
    to = ", ".join(f"{n:,} to {topic}" for topic, n in p.messages.items())
    only = f" (only {side} now)" if side != "both" else ""
    lines = [f"{verb}: {p.rows:,} rows of {p.table}, seed {p.seed}: {to}{only}", "", "Planted"]
    width = max((len(defect.name) for defect in p.defects), default=0)
    lines += [f"  {d.name:<{width}}  {d.rows:>7,}  → {d.expected}" for d in p.defects]
    lines += ["", "To be found again"]
    lines += [f"  {status:<{width}}  {n:>7,}" for status, n in p.statuses.items()]
    others = {"refused": p.refused, "tombstones": p.tombstones, "dead letters": p.dead_letters}
    others |= p.counters
    lines += [f"  {name:<{width}}  {n:>7,}" for name, n in others.items() if n]
    return "\n".join(lines)


def _share(text: str, feed: RuleFeed) -> tuple[str, float]:
    from headgate.declarations.errors import suggestion

    name, _, number = text.partition("=")
    known = [defect.name for defect in feed.defects]
    if name not in known:
        raise UsageError(f"there is no defect `{name}`", fix=suggestion(name, known, "defects"))
    try:
        share = float(number)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"`{number}` is no share", fix=f"write for example --share {name}=0.05")
    return name, share


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"`{text}` is no time", why=str(error), fix="write for example 2024-01-01T00:00:00Z"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
