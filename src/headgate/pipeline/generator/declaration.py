"""The declaration of a sample (`sample.yml`): how columns are drawn, what is planted; model and loader.

Loading raises every fault at once, each with its file and line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, GetJsonSchemaHandler, StrictStr, StringConstraints
from pydantic.dataclasses import dataclass
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from headgate.declarations.document import read_document, text_of, validate
from headgate.declarations.errors import Declared, suggestion
from headgate.declarations.project import find_dataset
from headgate.errors import DeclarationError, UsageError

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


SAMPLE = "sample.yml"
_Found = Iterator[tuple[str, str, str]]


def find_sample(root: Path, dataset: str) -> Path:
    """The sample declared beside that dataset's manifest."""
    path = find_dataset(root, dataset).with_name(SAMPLE)
    if path.is_file():
        return path
    raise UsageError(
        f"the dataset `{dataset}` declares no sample",
        why=f"datasets/{dataset}/{SAMPLE} does not exist",
        fix=f"write it after an existing datasets/*/{SAMPLE}, or use a Parquet file of your own",
    )


def load_sample(path: Path) -> Declared[Sample]:
    """The sample in `path`; raises DeclarationError with all faults."""
    document = read_document(str(path), text_of(path), {})
    sample = validate(Sample, document) if isinstance(document.data, dict) else None
    if sample is None and not document.faults:
        document.add("", "the sample is not a mapping", "Write `key: value` lines.", line=1)
    for pointer, what, fix in faults_of(sample) if sample else ():
        document.add(pointer, what, fix)
    if sample is None or document.faults:
        raise DeclarationError(sorted(document.faults, key=lambda fault: fault.line or 0))
    return Declared(sample, document.file, document.lines)


def faults_of(sample: Sample) -> _Found:
    """What pydantic cannot see: where, what, and what to write instead."""
    yield from _name_faults(sample)
    for index, column in enumerate(sample.columns):
        yield from _column_faults(f"columns[{index}]", column)
    yield from _planting_faults(sample)
    yield from _cycle_faults(sample)


def _name_faults(sample: Sample) -> _Found:
    names = [column.name for column in sample.columns]
    written = [column.name for column in sample.written]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield f"columns[{index}].name", f"`{name}` is declared twice", "Keep one."
    for index, column in enumerate(sample.columns):
        yield from _unknown(f"columns[{index}]", sorted(column.sources), names)
    for index, missing in enumerate(sample.missing):
        yield from _unknown(f"missing[{index}].columns", missing.columns, written)
    for pointer, planting in _plantings(sample):
        yield from _unknown(pointer, planting.columns, written)


def _unknown(pointer: str, wanted: Iterable[str], known: Sequence[str]) -> _Found:
    for name in wanted:
        if name not in known:
            yield pointer, f"there is no column `{name}`", suggestion(name, known, "columns")


def _plantings(sample: Sample) -> Iterator[tuple[str, Planting]]:
    yield from ((f"bad[{index}]", planting) for index, planting in enumerate(sample.bad))
    yield from ((f"filtered[{index}]", planting) for index, planting in enumerate(sample.filtered))


def _column_faults(pointer: str, column: SampleColumn) -> _Found:
    if len(column.forms) != 1:
        said = " and ".join(f"`{form}`" for form in column.forms) or "no form"
        yield pointer, f"`{column.name}` has {said}", f"Write exactly one of: {', '.join(FORMS)}."
        return
    form = column.forms[0]
    if column.type not in FORMS[form]:
        types = ", ".join(sorted(FORMS[form]))
        yield f"{pointer}.{form}", f"`{form}` cannot make {column.type}", f"It makes: {types}."
    yield from _choice_faults(pointer, column)
    yield from _range_faults(pointer, column)
    if column.constant is not None:
        yield from _value_faults(f"{pointer}.constant", (column.constant,), column.type)
    if column.when:
        yield from _value_faults(f"{pointer}.when", (column.when.otherwise,), column.type)


def _choice_faults(pointer: str, column: SampleColumn) -> _Found:
    choice = column.choice
    if choice is None:
        return
    yield from _value_faults(f"{pointer}.choice.values", choice.values, column.type)
    if choice.weights and len(choice.weights) != len(choice.values):
        counts = f"{len(choice.values)} values have {len(choice.weights)} weights"
        yield f"{pointer}.choice.weights", counts, "Write one weight for each value."
    if choice.weights and sum(choice.weights) <= 0:
        yield f"{pointer}.choice.weights", "all weights are 0", "Give one value a weight."


def _range_faults(pointer: str, column: SampleColumn) -> _Found:
    time = column.time
    if time and time.hourly and (len(time.hourly) != HOURS or sum(time.hourly) <= 0):
        yield f"{pointer}.time.hourly", "these are not 24 weights", "Write one for each hour."
    if time and (time.start.tzinfo is None) != (time.end.tzinfo is None):
        what = "one of start and end has a time zone, the other has none"
        yield f"{pointer}.time.end", what, "Write both in the same way."
    elif time and time.end <= time.start:
        yield f"{pointer}.time.end", "the end is not after the start", "Swap them."
    for form in ("uniform", "normal", "lognormal"):
        bounds: Uniform | Normal | Lognormal | None = getattr(column, form)
        if bounds and bounds.low > bounds.high:
            yield f"{pointer}.{form}.low", "the low end is above the high end", "Swap them."


def _planting_faults(sample: Sample) -> _Found:
    types = {column.name: column.type for column in sample.written}
    planted = sample.duplicates + sum(planting.share for _, planting in _plantings(sample))
    if planted > 1:
        yield "duplicates", f"the planted shares sum to {planted:g}", "Keep them below 1 together."
    kinds: set[str] = set()
    for pointer, planting in _plantings(sample):
        if planting.kind in kinds:
            yield f"{pointer}.kind", f"`{planting.kind}` is used twice", "Name it differently."
        kinds.add(planting.kind)
        yield from _change_faults(pointer, planting, types)


def _change_faults(pointer: str, planting: Planting, types: Mapping[str, str]) -> _Found:
    if not planting.columns:
        yield pointer, "nothing is changed", "Write `set`, `negate` or `shift_days`."
    for name in planting.negate:
        if types.get(name, "DOUBLE") not in NUMBERS:
            yield f"{pointer}.negate", f"`{name}` is no number", "Name a column of numbers."
    for name in planting.shift_days:
        if name in types and types[name] not in TIMES:
            yield f"{pointer}.shift_days", f"`{name}` is no time", "Name a column of times."
    for name, value in planting.set.items():
        if name in types and value is not None:
            yield from _value_faults(f"{pointer}.set.{name}", (value,), types[name])


def _cycle_faults(sample: Sample) -> _Found:
    try:
        TopologicalSorter({c.name: c.sources for c in sample.columns}).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        yield "columns", f"these need each other: {' → '.join(circle)}", "Break the circle."


def _value_faults(pointer: str, values: Iterable[Value], type_name: str) -> _Found:
    for value in values:
        if value is None or not _suits(value, type_name):
            yield pointer, f"`{value}` is no {type_name}", "Write a value of the column's type."


def _suits(value: bool | float | str, type_name: str) -> bool:
    if type_name in ("STRING", "BOOLEAN"):
        return isinstance(value, str if type_name == "STRING" else bool)
    if isinstance(value, bool):
        return False
    try:
        if type_name in TIMES:
            return bool(datetime.fromisoformat(str(value)))
        return float(value) == int(value) if type_name != "DOUBLE" else bool(str(float(value)))
    except (ValueError, OverflowError):
        return False
