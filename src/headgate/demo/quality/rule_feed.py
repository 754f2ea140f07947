"""How the rows of a rule table look when they are sound, and which defects are planted in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import ConfigDict, Field, StrictBool, StrictStr
from pydantic.dataclasses import dataclass

from headgate.pipeline.generator.spec_sample import SampleColumn, Share, Text, Value
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
