"""Tests of a rule set, declared beside it in `<file>.tests.yaml`: given rows, and what is expected of each.

`quality.evaluator` runs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, StrictBool, StrictStr
from pydantic.dataclasses import dataclass

from headgate.declarations.document import Text, read_document, text_of, validate
from headgate.declarations.errors import Declared, Refusal, suggestion
from headgate.errors import DeclarationError
from headgate.quality.spec.rule_set import Severity

SUFFIX = ".tests"
_STRICT = ConfigDict(extra="forbid", str_strip_whitespace=True)


def _listed(value: object) -> object:
    kind = type(value)
    return [value] if kind is dict else value


def _time(value: object) -> object:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None:
        raise Refusal("this is not a time", "Write for example 2024-01-31T12:00:00Z.")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


# A row as the topic has it: with one source its fields, with two a mapping for each side.
Row = dict[str, Any]
Rows = Annotated[
    tuple[Row, ...],
    BeforeValidator(_listed, json_schema_input_type=Row | tuple[Row, ...]),
    Field(min_length=1),
]


@dataclass(frozen=True, config=_STRICT)
class Expected:
    """What must be said of a row; what is left out is not looked at."""

    status: Annotated[Text, Field(description="The row's dq_status.")]
    rules: Annotated[
        tuple[Text, ...] | None, Field(description="The names of all rules that match, in order.")
    ] = None
    reason: Annotated[StrictStr | None, Field(description="The row's dq_reason.")] = None
    severity: Annotated[Severity | None, Field(description="Of the rule that gave the status.")] = (
        None
    )


Expectations = Annotated[
    tuple[Expected, ...],
    BeforeValidator(_listed, json_schema_input_type=Expected | tuple[Expected, ...]),
    Field(min_length=1),
]


@dataclass(frozen=True, config=_STRICT)
class RuleTest:
    """One case: a row or several, and what is expected of each."""

    name: Annotated[Text, Field(description="What is shown, as a sentence.")]
    given: Annotated[Rows, Field(description="A row, or a list of rows.")]
    expect: Annotated[Expectations, Field(description="Of the row, or of each in the list.")]
    sequence: Annotated[
        StrictBool, Field(description="The rows come one after another, for `unique`.")
    ] = False
    table: Annotated[Text | None, Field(description="Where the rule set has several.")] = None


@dataclass(frozen=True, config=_STRICT)
class RuleTests:
    """The tests of one rule set."""

    tests: Annotated[tuple[RuleTest, ...], Field(min_length=1)]
    defaults: Annotated[
        dict[Text, Row], Field(description="By table: fields that rows have unless they say other.")
    ] = Field(default_factory=dict)
    batch_time: Annotated[
        Annotated[datetime, BeforeValidator(_time)], Field(description="What {batch_time} is.")
    ] = datetime(2024, 1, 1, tzinfo=UTC)


def load_tests(path: Path, tables: tuple[str, ...]) -> Declared[RuleTests]:
    """The tests in `path` of a rule set with these tables; raises all faults."""
    document = read_document(str(path), text_of(path), {})
    tests = validate(RuleTests, document) if isinstance(document.data, dict) else None
    if tests is None and not document.faults:
        document.add("", "the tests are not a mapping", "Write `tests:` and a list.", line=1)
    for pointer, what, fix in _faults(tests, tables) if tests else ():
        document.add(pointer, what, fix)
    if tests is None or document.faults:
        raise DeclarationError(sorted(document.faults, key=lambda fault: fault.line or 0))
    return Declared(tests, document.file, document.lines)


def rule_tests_beside(path: Path) -> Path:
    """Where the tests of the rule set in `path` stand."""
    return path.with_name(f"{path.stem}{SUFFIX}{path.suffix}")


def rules_beside(path: Path) -> Path:
    """The rule set that the tests in `path` are of."""
    return path.with_name(path.name.replace(f"{SUFFIX}.", ".", 1))


def _faults(tests: RuleTests, tables: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    for name in tests.defaults:
        if name not in tables:
            near = suggestion(name, tables, "tables")
            yield f"defaults.{name}", f"there is no table `{name}`", near
    for at, test in enumerate(tests.tests):
        place = f"tests[{at}]"
        if test.table is None and len(tables) > 1:
            yield place, "`table` is missing", f"Write one of: {', '.join(tables)}."
        if test.table is not None and test.table not in tables:
            near = suggestion(test.table, tables, "tables")
            yield f"{place}.table", f"there is no table `{test.table}`", near
        if len(test.given) != len(test.expect):
            counts = f"{len(test.given)} rows have {len(test.expect)} expectations"
            yield f"{place}.expect", counts, "Write one for each row."
        if test.name in [other.name for other in tests.tests[:at]]:
            yield f"{place}.name", f"`{test.name}` is the name of another test", "Rename it."
