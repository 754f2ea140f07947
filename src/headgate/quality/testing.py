"""Runs the tests of a rule set by its Python twin, and says where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.conditions.evaluator.twin_values import Value
from headgate.declarations.declared import Declared, line_of
from headgate.errors import DeclarationError, Fault
from headgate.quality.compile.model import JudgedTable
from headgate.quality.rows import FieldRefusal, row_values
from headgate.quality.spec.rule_tests import Expected, RuleTest, RuleTests
from headgate.quality.twin import RowVerdict, judge_row, judge_rows


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
