"""Reads the declaration of a feed: every fault at once, each with its file and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from headgate.declarations.declared import Declared
from headgate.declarations.model import validate
from headgate.declarations.refusal import suggestion
from headgate.declarations.spec_document import read_document, text_of
from headgate.demo.quality.rule_feed import HASH, Change, Defect, RuleFeed
from headgate.errors import DeclarationError, UsageError
from headgate.pipeline.generator.sample_loader import faults_of as sample_faults
from headgate.pipeline.generator.spec_sample import Sample
from headgate.quality.spec.rule_set import Side

FOLDER = Path("rules") / "feed"
SIDES: tuple[Side, ...] = ("onprem", "cloud")
_Found = Iterator[tuple[str, str, str]]


def find_feed(root: Path, table: str) -> Path:
    """The feed declared for that rule table."""
    path = root / FOLDER / f"{table}.yml"
    if path.is_file():
        return path
    known = [file.stem for file in (root / FOLDER).glob("*.yml")]
    raise UsageError(
        f"there is no feed for the table `{table}`",
        why=f"{FOLDER / path.name} does not exist",
        fix=suggestion(table, known, "feeds"),
    )


def load_feed(path: Path) -> Declared[RuleFeed]:
    """The feed in `path`; raises DeclarationError with all faults."""
    document = read_document(str(path), text_of(path), {})
    feed = validate(RuleFeed, document) if isinstance(document.data, dict) else None
    if feed is None and not document.faults:
        document.add("", "the feed is not a mapping", "Write `key: value` lines.", line=1)
    for pointer, what, fix in faults_of(feed) if feed else ():
        document.add(pointer, what, fix)
    if feed is None or document.faults:
        raise DeclarationError(sorted(document.faults, key=lambda fault: fault.line or 0))
    return Declared(feed, document.file, document.lines)


def faults_of(feed: RuleFeed) -> _Found:
    """What pydantic cannot see: where, what, and what to write instead."""
    if feed.dataset is None and not feed.columns:
        yield "columns", "rows come from nowhere", "Write `columns`, or the name of a `dataset`."
        return
    if feed.dataset is None:
        yield from sample_faults(Sample(columns=feed.columns))
        yield from _column_faults(feed)
    yield from _defect_faults(feed)


def columns_of(feed: RuleFeed) -> tuple[str, ...]:
    """The names that messages can show; a dataset's own are not known here."""
    own = tuple(column.name for column in feed.columns if not column.helper)
    key = (feed.key.field,) if feed.key else ()
    return (*key, *own, feed.event_time.field, *((HASH,) if feed.hash_of else ()))


def _column_faults(feed: RuleFeed) -> _Found:
    known = columns_of(feed)
    yield from _unknown("hash_of", feed.hash_of, known)
    for side, shown in feed.sides.items():
        for field, column in shown.items():
            yield from _unknown(f"sides.{side}.{field}", (column,), known)


def _unknown(pointer: str, wanted: Sequence[str], known: Sequence[str]) -> _Found:
    for name in wanted:
        if name not in known:
            yield pointer, f"there is no column `{name}`", suggestion(name, known, "columns")


def _defect_faults(feed: RuleFeed) -> _Found:
    names: set[str] = set()
    for index, defect in enumerate(feed.defects):
        pointer = f"defects[{index}]"
        if defect.name in names:
            yield f"{pointer}.name", f"`{defect.name}` is used twice", "Name it differently."
        names.add(defect.name)
        yield from _change_faults(pointer, defect, feed)
        yield from _expect_faults(pointer, defect)
    total = sum(defect.share for defect in feed.defects)
    if total > 1:
        yield "defects", f"the shares sum to {total:g}", "Keep them below 1 together."


def _change_faults(pointer: str, defect: Defect, feed: RuleFeed) -> _Found:
    if not defect.changes:
        yield pointer, "nothing is changed", "Write `onprem` or `cloud` with what is done to it."
    for side in SIDES:
        change = defect.change(side)
        if change is None:
            continue
        if change == Change():
            yield f"{pointer}.{side}", "nothing is changed", "Write for example `drop: true`."
        if change.rehash and not feed.hash_of:
            yield f"{pointer}.{side}.rehash", "the rows have no hash", "Declare `hash_of`."
        shown: Mapping[str, str] = feed.sides.get(side, {})
        if shown:
            yield from _unknown(f"{pointer}.{side}", change.fields, tuple(shown))


def _expect_faults(pointer: str, defect: Defect) -> _Found:
    expect = defect.expect
    if expect.status is None and not (expect.refused or expect.tombstones):
        yield f"{pointer}.expect", "nothing is expected", "Write `status`, `refused`, `tombstones`."
    if expect.status is None and expect.rules:
        yield f"{pointer}.expect", "rules match rows only", "Write the row's `status` too."
