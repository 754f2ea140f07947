"""The model of a rule set, version 2: tables with one source or two, their rules and their aggregates.

One source makes a quality table, two make a pair that is reconciled. Frozen dataclasses; the published
JSON Schema `schemas/rules.schema.json` is made from them, so names and descriptions of fields are public.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, cast

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
)
from pydantic.dataclasses import dataclass

from headgate.declarations.document import Text
from headgate.declarations.errors import Refusal, suggestion
from headgate.declarations.types import SqlType
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.quality.spec.values import (
    ColumnType,
    Constant,
    Duration,
    Exact,
    Limit,
    Number,
    written,
)

VERSION = 2
Severity = Literal["ERROR", "WARN", "INFO"]
SEVERITIES: tuple[Severity, ...] = ("ERROR", "WARN", "INFO")
OnFail = Literal["keep", "dead_letter", "stop"]
NullHandling = Literal["default", "fail", "skip"]
Side = Literal["onprem", "cloud"]
SIDES: tuple[Side, ...] = ("onprem", "cloud")
RuleType = Literal[
    "required",
    "range",
    "threshold",
    "regex",
    "timestamp_freshness",
    "cross_field",
    "lookup_in",
    "lookup_not_in",
    "unique",
    "custom_sql",
    "schema",
]
Measure = Literal["row_count", "freshness", "null_rate", "distinct_count", "sum", "quantile"]


def _column(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


WATERMARK, WINDOW, HORIZON = timedelta(seconds=5), timedelta(seconds=10), timedelta(days=1)
_STRICT = ConfigDict(extra="forbid", str_strip_whitespace=True)


@dataclass(frozen=True, config=_STRICT)
class RuleColumn:
    """A field of the source's rows; short form: its type alone."""

    type: Annotated[ColumnType, Field(description="Its type; times are TIMESTAMP(3), in UTC.")]
    sensitive: Annotated[StrictBool, Field(description="Masked wherever a person looks.")] = False


ColumnForm = Annotated[
    RuleColumn, BeforeValidator(_column, json_schema_input_type=RuleColumn | StrictStr)
]


@dataclass(frozen=True, config=_STRICT)
class RuleSource:
    """Where rows come from: a topic with JSON values, or a table of the lake."""

    table: Annotated[Text, Field(description="The name of the view that the rules read.")]
    columns: Annotated[
        dict[Text, ColumnForm],
        Field(min_length=1, description="The fields by name, each with its type."),
    ]
    topic: Annotated[Text | None, Field(description="The topic; may be ${TOPIC}.")] = None
    iceberg: Annotated[Text | None, Field(description="A table of the lake, schema.table.")] = None
    dlq_topic: Annotated[
        Text | None, Field(description="The topic of dead letters; default <topic>.dlq.")
    ] = None
    dc: Annotated[Text, Field(description="The data centre, a dimension of metrics.")] = "local"
    alias: Annotated[
        Text, Field(description="The name that rules call it by, as {t1}; t2 for the cloud.")
    ] = "t1"
    event_time: Annotated[
        Text | None, Field(description="The column with the event time; default: record time.")
    ] = None
    watermark: Annotated[
        Duration,
        Field(description="How long windows wait.", json_schema_extra=written(WATERMARK)),
    ] = WATERMARK
    pk_path: Annotated[
        Text | None, Field(description="The key inside the value, as a[type='PK'].value.")
    ] = None
    pk_view: Annotated[
        Text | None, Field(description="Another name of the view of rows with their key.")
    ] = None
    framed: Annotated[
        StrictBool,
        Field(description="Values carry a schema registry's five bytes before the JSON."),
    ] = False

    @property
    def types(self) -> dict[str, SqlType]:
        return {name: column.type for name, column in self.columns.items()}

    @property
    def sensitive(self) -> frozenset[str]:
        return frozenset(name for name, column in self.columns.items() if column.sensitive)


@dataclass(frozen=True, config=_STRICT)
class HashFields:
    """The columns that hold each side's row hash."""

    onprem_field: Text
    cloud_field: Text


@dataclass(frozen=True, config=_STRICT)
class Emit:
    """What a rule says of a row that it matches."""

    dq_status: Annotated[Text, Field(description="The row's status, in capitals.")]
    metric: Annotated[Text | None, Field(description="Counts its rows; default: the name.")] = None
    severity: Severity = "ERROR"


@dataclass(frozen=True, config=_STRICT)
class Rule:
    """A condition (`when`), or a typed short form (`type`), and what it emits."""

    name: Annotated[Text, Field(description="Unique in its table.")]
    description: Annotated[StrictStr, Field(description="The reason, in words.")] = ""
    when: Annotated[
        Text | None,
        Field(description="SQL text; the rule matches a row on which it is true: the row is bad."),
    ] = None
    type: Annotated[RuleType | None, Field(description="A short form instead of `when`.")] = None
    emit: Annotated[Emit | None, Field(description="Status, metric and severity.")] = None
    severity: Annotated[Severity | None, Field(description="Where `emit` is left out.")] = None
    on_fail: Annotated[OnFail | None, Field(description="Default: the table's.")] = None
    null_handling: NullHandling = "default"
    field: Text | None = None
    fields: tuple[Text, ...] = ()
    min: Limit = None
    max: Limit = None
    pattern: Exact | None = None
    max_age_seconds: Annotated[int | None, Field(strict=True, ge=1)] = None
    left: Text | None = None
    op: Text | None = None
    right: Text | None = None
    values: tuple[Constant, ...] = ()
    values_file: Annotated[Text | None, Field(description="A JSON list, beside the rule set.")] = (
        None
    )
    sql: Text | None = None
    horizon: Annotated[
        Duration | None, Field(description="How far back `unique` looks; default 1 day.")
    ] = None
    allow_unknown: Annotated[
        StrictBool, Field(description="Whether `schema` lets undeclared fields pass.")
    ] = False


@dataclass(frozen=True, config=_STRICT)
class Aggregate:
    """A measure over each window, and each group in it, against limits."""

    name: Annotated[Text, Field(description="Unique in its table.")]
    measure: Measure
    description: StrictStr = ""
    field: Annotated[Text | None, Field(description="The column; row_count has none.")] = None
    quantile: Annotated[Number, Field(description="Which one, as 0.95.")] = None
    group_by: tuple[Text, ...] = ()
    min: Number = None
    max: Number = None
    severity: Severity = "ERROR"


def _check_sides(value: object) -> object:
    """Two sources are the sides of a reconciliation; a single one may have any name."""
    is_mapping = isinstance(value, dict)
    names = [str(name) for name in cast("dict[object, object]", value)] if is_mapping else []
    if len(names) > len(SIDES):
        raise Refusal("a table has one source or two", "Declare a table for each other source.")
    unknown = [name for name in names if name not in SIDES]
    if len(names) == len(SIDES) and unknown:
        what = f"the key `{unknown[0]}` is unknown: two sources are `onprem` and `cloud`"
        raise Refusal(what, suggestion(unknown[0], SIDES, "keys"), key=unknown[0])
    return value


@dataclass(frozen=True, config=_STRICT)
class RuleTable:
    """One source (quality) or two (reconciliation), and the rules for it alone."""

    name: Annotated[
        Text, Field(description="Names the views dq_results_<name>, dq_metrics_<name>.")
    ]
    pk: Annotated[Text, Field(description="The column that is the key.")]
    sources: Annotated[
        dict[str, RuleSource],
        BeforeValidator(_check_sides),
        Field(min_length=1, description="One under any name; two are onprem and cloud."),
    ]
    hash: HashFields | None = None
    reconcile: Annotated[
        Reconcile | None,
        Field(
            description="Times, contract, audit and repair of two sources; left out, keys wait for metrics.window."
        ),
    ] = None
    rules: tuple[Rule, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    on_fail: Annotated[
        OnFail, Field(description="What becomes of a row that an ERROR rule matches.")
    ] = "keep"

    @property
    def first(self) -> RuleSource:
        """The source that gives the metrics their dimensions."""
        return next(iter(self.sources.values()))

    @property
    def is_pair(self) -> bool:
        return len(self.sources) == 2

    @property
    def sides(self) -> dict[Side, RuleSource]:
        """The sources by side; a single one, whatever its name, is taken as on-prem."""
        if not self.is_pair:
            return {"onprem": self.first}
        return {side: self.sources[side] for side in SIDES}


@dataclass(frozen=True, config=_STRICT)
class Metadata:
    env: Text = "local"
    pipeline: Text = "headgate"


@dataclass(frozen=True, config=_STRICT)
class Metrics:
    namespace: Annotated[Text, Field(description="Stands before each metric's name.")] = "dq"
    window: Annotated[
        Duration, Field(description="The width of a window.", json_schema_extra=written(WINDOW))
    ] = WINDOW


@dataclass(frozen=True, config=_STRICT)
class RuleSet:
    """Tables, and rules for all of them; a table's own come after those."""

    version: Annotated[int, Field(strict=True, ge=VERSION, le=VERSION)]
    tables: Annotated[tuple[RuleTable, ...], Field(min_length=1)]
    rules: tuple[Rule, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    metadata: Metadata = Metadata()
    metrics: Metrics = Metrics()

    def table(self, name: str) -> RuleTable:
        return next(table for table in self.tables if table.name == name)

    def rules_of(self, table: RuleTable) -> tuple[Rule, ...]:
        return (*self.rules, *table.rules)
