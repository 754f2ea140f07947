"""Declaration of a feed (`rules/feed/<table>.yml`): sound rows and planted defects; loaded with all faults at once.

`require_fit` checks it against its rule table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, StrictBool, StrictStr
from pydantic.dataclasses import dataclass

from headgate.declarations.document import read_document, text_of, validate
from headgate.declarations.errors import Declared, suggestion
from headgate.errors import DeclarationError, Fault, UsageError
from headgate.pipeline.generator.declaration import Sample, SampleColumn, Share, Text, Value
from headgate.pipeline.generator.declaration import faults_of as sample_faults
from headgate.quality.compile.resolve import JudgedTable
from headgate.quality.spec.rule_set import Duration, Side

HASH = "hash"
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_STRICT)
class FeedKey:
    """A key of its own for each row: the prefix, the seed and the row's number."""

    field: Text
    prefix: StrictStr = ""


@dataclass(frozen=True, config=_STRICT)
class FeedTime:
    """The rows' event times: spread over `span`, which ends when they are sent."""

    field: Text
    span: Duration = timedelta(minutes=1)
    start: Annotated[datetime | None, Field(description="Where the span begins instead.")] = None


@dataclass(frozen=True, config=_STRICT)
class Change:
    """What is done to one side's message of a row."""

    set: Annotated[
        Mapping[str, Value], Field(description="Fields with another value, of any type, or null.")
    ] = field(default_factory=dict[str, Value])
    add: Annotated[Mapping[str, Value], Field(description="Fields that nobody declared.")] = field(
        default_factory=dict[str, Value]
    )
    remove: Annotated[tuple[Text, ...], Field(description="Fields left out.")] = ()
    negate: Annotated[tuple[Text, ...], Field(description="Numbers with the other sign.")] = ()
    rehash: Annotated[StrictBool, Field(description="A sound hash of other content.")] = False
    late: Annotated[Duration | None, Field(description="All times moved back.")] = None
    drop: Annotated[StrictBool, Field(description="The message is not sent.")] = False
    garble: Annotated[StrictBool, Field(description="The value is no JSON.")] = False
    tombstone: Annotated[StrictBool, Field(description="The value is null.")] = False
    repeat: Annotated[StrictBool, Field(description="Sent once more, after all rows.")] = False
    older_first: Annotated[StrictBool, Field(description="An older version goes before.")] = False

    @property
    def fields(self) -> tuple[str, ...]:
        """The declared fields that it touches."""
        return (*self.set, *self.remove, *self.negate)


@dataclass(frozen=True, config=_STRICT)
class Expect:
    """What must become of the row, or of the copy where one is sent once more."""

    status: Annotated[
        Text | None, Field(description="Its dq_status; none when no row is left.")
    ] = None
    rules: Annotated[tuple[Text, ...], Field(description="The rules that match, in order.")] = ()
    dead_letter: Annotated[StrictBool, Field(description="A rule makes it a dead letter.")] = False
    refused: Annotated[int, Field(ge=0, description="Messages that are no rows.")] = 0
    tombstones: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True, config=_STRICT)
class Defect:
    """One kind of defect: its share of the rows, what is changed, what is expected."""

    name: Text
    share: Share
    expect: Expect
    onprem: Change | None = None
    cloud: Change | None = None

    def change(self, side: Side) -> Change | None:
        return self.onprem if side == "onprem" else self.cloud

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(change for change in (self.onprem, self.cloud) if change)


@dataclass(frozen=True, config=_STRICT)
class RuleFeed:
    """The rows of one rule table; `sides` names each message's fields and what they show."""

    event_time: FeedTime
    dataset: Annotated[Text | None, Field(description="Rows of this dataset's sample.yml.")] = None
    columns: Annotated[
        tuple[SampleColumn, ...], Field(description="As in a sample.yml; in place of a dataset's.")
    ] = ()
    key: FeedKey | None = None
    hash_of: Annotated[
        tuple[Text, ...], Field(description="What the SHA-256 `hash` is made of, in this order.")
    ] = ()
    sides: Annotated[
        Mapping[Side, Mapping[str, str]],
        Field(description="Message field: column. Without: all columns on the one side."),
    ] = field(default_factory=dict[Side, Mapping[str, str]])
    defects: tuple[Defect, ...] = ()


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
        for name, column in shown.items():
            yield from _unknown(f"sides.{side}.{name}", (column,), known)


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


def require_fit(feed: Declared[RuleFeed], table: JudgedTable) -> None:
    """Raise with all places where the feed speaks of what the table does not have."""
    found = list(_faults(feed.value, table))
    if found:
        raise DeclarationError([_fault_at(feed, *one) for one in found])


def _fault_at(feed: Declared[RuleFeed], pointer: str, what: str, fix: str) -> Fault:
    return feed.fault(pointer, what, "", fix)


def _faults(feed: RuleFeed, table: JudgedTable) -> _Found:
    sources = table.table.sides
    for side in feed.sides:
        if side not in sources:
            yield f"sides.{side}", "the table has no such source", f"It has: {', '.join(sources)}."
    for side in sources:
        if sources[side].topic is None:
            yield "sides", f"`{side}` reads no topic", "Feed a table that reads topics."
        elif len(sources) > 1 and side not in feed.sides:
            yield "sides", f"`{side}` is missing", "Say what its messages show."
    for index, defect in enumerate(feed.defects):
        yield from _unfit_defect_faults(f"defects[{index}]", defect, table)


def _unfit_defect_faults(pointer: str, defect: Defect, table: JudgedTable) -> _Found:
    rules = {rule.name: rule for rule in table.rules}
    for side in SIDES:
        if defect.change(side) and side not in table.table.sides:
            yield f"{pointer}.{side}", "the table has no such source", "Take the other one."
    for name in defect.expect.rules:
        if name not in rules:
            yield (
                f"{pointer}.expect.rules",
                f"there is no rule `{name}`",
                suggestion(name, rules, "rules"),
            )
    first = rules.get(defect.expect.rules[0]) if defect.expect.rules else None
    if first and first.status != defect.expect.status:
        what = f"`{first.name}` gives {first.status}, not {defect.expect.status}"
        yield f"{pointer}.expect.status", what, f"Write {first.status}."
