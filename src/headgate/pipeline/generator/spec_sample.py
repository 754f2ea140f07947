"""What a sample of a dataset looks like: how each column is drawn, and what is planted in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from graphlib import TopologicalSorter
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, GetJsonSchemaHandler, StrictStr, StringConstraints
from pydantic.dataclasses import dataclass
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

DEFAULT_SEED = 42
HOURS = 24

Text = Annotated[StrictStr, StringConstraints(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Value = bool | int | float | str | None
ColumnType = Literal["BIGINT", "INT", "DOUBLE", "BOOLEAN", "STRING", "TIMESTAMP(6)"]


class _Optional:
    """Describes an optional key by its model alone, as a reader of the schema expects it."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(core["schema"] if core["type"] == "nullable" else core)


_OPTIONAL = _Optional()

_STRICT = ConfigDict(extra="forbid")
NUMBERS = frozenset({"BIGINT", "INT", "DOUBLE"})
TIMES = frozenset({"TIMESTAMP(6)"})
_ANY = frozenset({"BIGINT", "INT", "DOUBLE", "BOOLEAN", "STRING"})
# Each form of a column and the types it can make.
FORMS: Mapping[str, frozenset[str]] = {
    "choice": _ANY,
    "constant": _ANY,
    "code": frozenset({"STRING"}),
    "uniform": NUMBERS,
    "normal": NUMBERS,
    "lognormal": NUMBERS,
    "sum": NUMBERS,
    "product": NUMBERS,
    "time": TIMES,
    "after": TIMES,
}


@dataclass(frozen=True, config=_STRICT)
class Choice:
    """One of the values; without weights all are equally likely."""

    values: Annotated[tuple[Value, ...], Field(min_length=1)]
    weights: tuple[Annotated[float, Field(ge=0)], ...] = ()


@dataclass(frozen=True, config=_STRICT)
class Code:
    """Letters and digits drawn by chance after a prefix: so many that no two are alike."""

    prefix: StrictStr = ""
    length: Annotated[int, Field(ge=1, le=32)] = 12


@dataclass(frozen=True, config=_STRICT)
class Uniform:
    low: float
    high: float


@dataclass(frozen=True, config=_STRICT)
class Normal:
    mean: float
    sigma: Annotated[float, Field(gt=0)]
    low: float = float("-inf")
    high: float = float("inf")


@dataclass(frozen=True, config=_STRICT)
class Lognormal:
    median: Annotated[float, Field(gt=0)]
    sigma: Annotated[float, Field(gt=0)]
    low: float = 0.0
    high: float = float("inf")


@dataclass(frozen=True, config=_STRICT)
class Between:
    """Whole seconds from `start` up to `end`; `hourly` weighs the 24 hours of a day."""

    start: datetime
    end: datetime
    hourly: tuple[Annotated[float, Field(ge=0)], ...] = ()


@dataclass(frozen=True, config=_STRICT)
class After:
    """A time column plus a number of seconds, which is a column too."""

    column: Text
    seconds: Text


@dataclass(frozen=True, config=_STRICT)
class Sum:
    of: Annotated[tuple[Text, ...], Field(min_length=1)]
    base: float = 0.0


@dataclass(frozen=True, config=_STRICT)
class Product:
    of: Annotated[tuple[Text, ...], Field(min_length=1)]
    factor: float = 1.0


@dataclass(frozen=True, config=_STRICT)
class When:
    """The column is drawn where another has one of these values; elsewhere it is `otherwise`."""

    column: Text
    one_of: Annotated[tuple[Value, ...], Field(min_length=1)]
    otherwise: Value


@dataclass(frozen=True, config=_STRICT)
class SampleColumn:
    """One column; exactly one of the forms says how it is made."""

    name: Annotated[Text, Field(description="The column's name in the file, case and all.")]
    type: Annotated[ColumnType, Field(description="Its type in the file.")]
    choice: Annotated[Choice | None, _OPTIONAL] = None
    constant: Value = None
    code: Annotated[Code | None, _OPTIONAL] = None
    uniform: Annotated[Uniform | None, _OPTIONAL] = None
    normal: Annotated[Normal | None, _OPTIONAL] = None
    lognormal: Annotated[Lognormal | None, _OPTIONAL] = None
    sum: Annotated[Sum | None, _OPTIONAL] = None
    product: Annotated[Product | None, _OPTIONAL] = None
    time: Annotated[Between | None, _OPTIONAL] = None
    after: Annotated[After | None, _OPTIONAL] = None
    when: Annotated[When | None, _OPTIONAL] = None
    decimals: Annotated[int | None, Field(ge=0, le=9)] = None
    helper: Annotated[bool, Field(description="Used by other columns, not written.")] = False

    @property
    def forms(self) -> tuple[str, ...]:
        return tuple(form for form in FORMS if getattr(self, form) is not None)

    @property
    def sources(self) -> frozenset[str]:
        """The columns that must be made before this one."""
        parts = (
            self.sum.of if self.sum else (),
            self.product.of if self.product else (),
            (self.after.column, self.after.seconds) if self.after else (),
            (self.when.column,) if self.when else (),
        )
        return frozenset(name for part in parts for name in part)


@dataclass(frozen=True, config=_STRICT)
class Missing:
    """Columns that are NULL together in this share of the rows."""

    share: Share
    columns: Annotated[tuple[Text, ...], Field(min_length=1)]


@dataclass(frozen=True, config=_STRICT)
class Planting:
    """One kind of planted row: its share, and what is changed in an ordinary row to make it."""

    kind: Text
    share: Share
    set: Mapping[str, Value] = field(default_factory=dict[str, Value])
    negate: tuple[Text, ...] = ()
    shift_days: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.set, *self.negate, *self.shift_days)


@dataclass(frozen=True, config=_STRICT)
class Sample:
    """`bad` rows are refused by bronze, `filtered` ones by silver; duplicates repeat clean rows."""

    columns: Annotated[
        tuple[SampleColumn, ...], Field(min_length=1, description="In the order of the file.")
    ]
    missing: tuple[Missing, ...] = ()
    duplicates: Share = 0.0
    bad: tuple[Planting, ...] = ()
    filtered: tuple[Planting, ...] = ()

    @property
    def written(self) -> tuple[SampleColumn, ...]:
        return tuple(column for column in self.columns if not column.helper)

    @property
    def in_order_of_making(self) -> tuple[SampleColumn, ...]:
        by_name = {column.name: column for column in self.columns}
        graph = {name: column.sources for name, column in by_name.items()}
        return tuple(by_name[name] for name in TopologicalSorter(graph).static_order())

    def clean(self) -> Sample:
        """The same sample with nothing planted in it."""
        return Sample(columns=self.columns, missing=self.missing)
