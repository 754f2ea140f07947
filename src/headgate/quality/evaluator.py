"""The reference evaluator of a rule table: judges rows in Python, without Spark, and runs a rule set's tests.

Rows as a person writes them become values of the declared types; the verdict equals that of the SQL, which
tests prove. `Seen` keeps the keys that `unique` rules have met. Of a test only what stands in `expect` is
compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from headgate.conditions.evaluator.evaluate import evaluate
from headgate.conditions.evaluator.values import Value
from headgate.conditions.type_coercion import read_date, read_time
from headgate.declarations.errors import Declared, Refusal, line_of, suggestion
from headgate.declarations.types import SqlType
from headgate.errors import DeclarationError, Fault
from headgate.quality.compile.resolve import VALID, JudgedRule, JudgedTable
from headgate.quality.compile.results import OK
from headgate.quality.compile.typed_rules import EXTRA, MISSING
from headgate.quality.pairs import pair_support
from headgate.quality.spec.rule_set import OnFail, RuleSource, Severity
from headgate.quality.spec.rule_tests import Expected, RuleTest, RuleTests

_WHOLE = {"INT": 1 << 31, "BIGINT": 1 << 63}


class FieldRefusal(Refusal):
    """Why a row cannot be taken, and the path of the field that it is about."""

    def __init__(self, path: str, refusal: Refusal) -> None:
        super().__init__(refusal.what, refusal.fix, refusal.why)
        self.path = path


def row_values(judged: JudgedTable, given: Mapping[str, object]) -> dict[str, Value]:
    """The row under the keys that conditions use; a field that is not there is NULL."""
    table = judged.table
    if not table.is_pair:
        return _side(judged, table.first, given, "", "")
    found: dict[str, Value] = {}
    for side, row in given.items():
        if side not in table.sources:
            what, fix = f"there is no source `{side}`", suggestion(side, table.sources, "sources")
            raise FieldRefusal(side, Refusal(what, fix))
        source = table.sources[side]
        if isinstance(row, dict):
            fields = cast("Mapping[str, object]", row)
            found |= _side(judged, source, fields, f"{source.alias}.", f"{side}.")
        elif row is not None:
            raise FieldRefusal(side, Refusal("a side is a row or nothing", "Write its fields."))
    return found


def _side(
    judged: JudgedTable, source: RuleSource, given: Mapping[str, object], before: str, path: str
) -> dict[str, Value]:
    types = {
        key.removeprefix(before): kind
        for key, kind in judged.types.items()
        if key.startswith(before)
    }
    extra = [name for name in given if name not in types]
    missing = [name for name in source.columns if name not in given]
    if extra and not _has_schema_rule(judged):
        what = f"there is no column `{extra[0]}`"
        near = suggestion(extra[0], types, "columns")
        raise FieldRefusal(f"{path}{extra[0]}", Refusal(what, near))
    found: dict[str, Value] = {}
    for name, kind in types.items():
        try:
            found[before + name] = typed_value(given.get(name), kind)
        except Refusal as refusal:
            raise FieldRefusal(f"{path}{name}", refusal) from None
    names = {MISSING: missing, EXTRA: extra}
    return found | {key: ", ".join(listed) for key, listed in names.items() if listed}


def _has_schema_rule(judged: JudgedTable) -> bool:
    rules = judged.rule_set.rules_of(judged.table)
    return any(rule.type == "schema" for rule in rules)


def typed_value(value: object, kind: SqlType) -> Value:
    """The value at the column's type; a Refusal where it has none there."""
    if value is None:
        return None
    found = _typed(value, kind)
    if found is None:
        quotes = kind.name == "STRING" and isinstance(value, int | float)
        fix = "Put it in quotes." if quotes else "Write a value of the column's type, or null."
        raise Refusal(f"`{value}` is no {kind}", fix)
    return found


def _typed(value: object, kind: SqlType) -> Value:
    if kind.name == "BOOLEAN" or isinstance(value, bool):
        return value if isinstance(value, bool) and kind.name == "BOOLEAN" else None
    if kind.name == "STRING":
        return value if isinstance(value, str) else None
    if kind.is_time or kind.name == "DATE":
        return _point(value, kind)
    if kind.name in _WHOLE:
        whole = isinstance(value, int) and -_WHOLE[kind.name] <= value < _WHOLE[kind.name]
        return value if whole and isinstance(value, int) else None
    try:
        if kind.name == "DECIMAL":
            return Decimal(str(value))
        return float(value) if isinstance(value, int | float | str) else None
    except (InvalidOperation, ValueError, OverflowError):
        return None


def _point(value: object, kind: SqlType) -> Value:
    if not isinstance(value, str):
        return None
    found = read_date(value).value if kind.name == "DATE" else read_time(value, kind).value
    return found if isinstance(found, date) else None


@dataclass(frozen=True)
class RowVerdict:
    """What is said of a row; `rules` are the names of all that match, in order."""

    status: str
    reason: str
    rules: tuple[str, ...] = ()
    metric: str | None = None
    severity: Severity | None = None
    on_fail: OnFail = "keep"


@dataclass
class Seen:
    """The keys that `unique` rules have met, with the event times of the rows that had them."""

    times: dict[tuple[str, tuple[Value, ...]], list[datetime]] = field(
        default_factory=dict[tuple[str, tuple[Value, ...]], list[datetime]]
    )

    def again(self, rule: JudgedRule, row: Mapping[str, Value], time: datetime) -> bool:
        """Whether the row's key came before within the horizon; it is kept for later ones."""
        if rule.unique is None:
            return False
        key = tuple(row.get(name) for name in rule.unique.fields)
        if None in key:
            return False
        before = self.times.setdefault((rule.name, key), [])
        found = any(abs(time - other) <= rule.unique.horizon for other in before)
        before.append(time)
        return found


def judge_row(
    judged: JudgedTable,
    row: Mapping[str, Value],
    batch_time: datetime,
    seen: Seen | None = None,
) -> RowVerdict:
    """What the table's rules say of a row, whose values stand under the keys of `judged.types`.

    Of two sources the row is the pair; a side without a row has no values. `unique` rules match
    only where `seen` remembers the rows before.
    """
    if judged.table.is_pair:
        row = pair_support().row_with_action(judged.table, row)
    matching = [rule for rule in judged.rules if _matches(judged, rule, row, batch_time, seen)]
    if matching:
        first = matching[0]
        return RowVerdict(
            first.status,
            first.reason,
            tuple(rule.name for rule in matching),
            first.metric,
            first.severity,
            first.on_fail,
        )
    return _unruled(judged, row, batch_time)


def _unruled(judged: JudgedTable, row: Mapping[str, Value], batch_time: datetime) -> RowVerdict:
    """What is said of a row that no rule matches; of a pair, once it is due."""
    if not judged.table.is_pair:
        return RowVerdict(VALID, OK)
    found = pair_support().verdict_when_due(judged.table, row, batch_time)
    return RowVerdict(found.status, found.reason, (), found.metric, found.severity)


def judge_rows(
    judged: JudgedTable, rows: Sequence[Mapping[str, Value]], batch_time: datetime
) -> tuple[RowVerdict, ...]:
    """What is said of rows that come one after another; those of a table in the order of time."""
    seen, places = Seen(), list(range(len(rows)))
    if judged.table.first.topic is None:
        places.sort(key=lambda place: _time(judged, rows[place], batch_time))
    found = {place: judge_row(judged, rows[place], batch_time, seen) for place in places}
    return tuple(found[place] for place in range(len(rows)))


def _time(judged: JudgedTable, row: Mapping[str, Value], batch_time: datetime) -> datetime:
    time = row.get(judged.table.first.event_time or "")
    return time if isinstance(time, datetime) else batch_time


def _matches(
    judged: JudgedTable,
    rule: JudgedRule,
    row: Mapping[str, Value],
    batch_time: datetime,
    seen: Seen | None,
) -> bool:
    if rule.condition is not None:
        return evaluate(rule.condition, row, batch_time) is True
    if seen is None:
        return False
    return seen.again(rule, row, _time(judged, row, batch_time))


@dataclass(frozen=True)
class Difference:
    """One thing that came out otherwise; `row` counts from 1."""

    row: int
    what: str
    expected: str
    got: str


@dataclass(frozen=True)
class TestResult:
    """What became of one test."""

    file: str
    line: int | None
    table: str
    name: str
    passed: bool
    differences: tuple[Difference, ...] = ()


def run_tests(
    tables: Sequence[JudgedTable], declared: Declared[RuleTests]
) -> tuple[TestResult, ...]:
    """All tests of the file; raises the faults of rows that no source could send."""
    results, faults = list[TestResult](), [*_default_faults(tables, declared)]
    if faults:
        raise DeclarationError(faults)
    for at, test in enumerate(declared.value.tests):
        judged = next(t for t in tables if test.table in (None, t.table.name))
        try:
            rows = _rows(declared, judged, test, f"tests[{at}]")
        except DeclarationError as error:
            faults += error.faults
            continue
        results.append(_result(declared, judged, test, f"tests[{at}]", rows))
    if faults:
        raise DeclarationError(faults)
    return tuple(results)


def _default_faults(
    tables: Sequence[JudgedTable], declared: Declared[RuleTests]
) -> Iterator[Fault]:
    """Of two sources, shared fields stand side by side as rows do."""
    for judged in tables:
        name, sources = judged.table.name, judged.table.sources
        for side, fields in declared.value.defaults.get(name, {}).items():
            if judged.table.is_pair and (side not in sources or not isinstance(fields, dict)):
                what, fix = f"`{side}` is not a side with fields", "Write onprem: and cloud:."
                yield declared.fault(f"defaults.{name}.{side}", what, "", fix)


def _rows(
    declared: Declared[RuleTests], judged: JudgedTable, test: RuleTest, place: str
) -> list[dict[str, Value]]:
    rows, faults = list[dict[str, Value]](), list[Fault]()
    defaults = declared.value.defaults.get(judged.table.name, {})
    for at, given in enumerate(test.given):
        try:
            row = row_values(judged, completed(judged, defaults, given))
            rows.append(row)
        except FieldRefusal as refusal:
            inner = f"{place}.given.{refusal.path}"
            pointer = inner if inner in declared.lines else f"{place}.given[{at}].{refusal.path}"
            faults.append(declared.fault(pointer, refusal.what, refusal.why, refusal.fix))
            continue
        if judged.table.is_pair and all(value is None for value in row.values()):
            what, fix = "the row has neither side", "Write onprem:, cloud: or both."
            faults.append(declared.fault(f"{place}.given[{at}]", what, "", fix))
    if faults:
        raise DeclarationError(faults)
    return rows


def completed(
    judged: JudgedTable, defaults: dict[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """The row with the fields that it shares with others; of a pair, side by side."""
    if not judged.table.is_pair:
        return defaults | given
    return {
        side: {**(defaults.get(side) or {}), **row} if isinstance(row, dict) else row
        for side, row in given.items()
    }


def _result(
    declared: Declared[RuleTests],
    judged: JudgedTable,
    test: RuleTest,
    place: str,
    rows: list[dict[str, Value]],
) -> TestResult:
    now = declared.value.batch_time
    verdicts = (
        judge_rows(judged, rows, now)
        if test.sequence
        else [judge_row(judged, row, now) for row in rows]
    )
    pairs = enumerate(zip(test.expect, verdicts, strict=True), 1)
    found = tuple(d for at, (expected, got) in pairs for d in _differences(at, expected, got))
    line = line_of(declared.lines, place)
    return TestResult(declared.file, line, judged.table.name, test.name, not found, found)


def _differences(row: int, expected: Expected, got: RowVerdict) -> Iterator[Difference]:
    if expected.status != got.status:
        yield Difference(row, "status", expected.status, got.status)
    if expected.rules is not None and expected.rules != got.rules:
        yield Difference(row, "rules", _listed(expected.rules), _listed(got.rules))
    if expected.reason is not None and expected.reason != got.reason:
        yield Difference(row, "reason", expected.reason, got.reason)
    if expected.severity is not None and expected.severity != got.severity:
        yield Difference(row, "severity", expected.severity, got.severity or "none")


def _listed(names: tuple[str, ...]) -> str:
    return f"[{', '.join(names)}]"
