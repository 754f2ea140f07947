"""`headgate rules check`, `list` and `test`: faults of rule sets, the tables they declare, and their tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.console import console
from headgate.terminal.project import below, faults_below

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.errors import Fault
    from headgate.quality.compile.resolve import JudgedFile, JudgedTable
    from headgate.quality.evaluator import TestResult
    from headgate.quality.spec.rule_set import RuleTable


_MOST_NOTES = 20


@dataclass(frozen=True)
class Checked:
    """What `rules check` found."""

    files: tuple[str, ...]
    tables: tuple[str, ...]
    rules: int
    aggregates: int
    faults: tuple[Fault, ...]
    notes: tuple[Fault, ...]
    passed: bool


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Notes count as faults.")
def rules_check(files: tuple[Path, ...], strict: bool) -> None:
    """Check rule sets, all of them or those given: every fault at once, each with its line.

    A note is something that is valid but hardly meant: a rule that matches every row, repeats another,
    or can never give a row its status. Nothing is run: no Spark, no broker.

    \b
    Examples:
      headgate rules check
      headgate rules check rules/orders.yml --strict
      headgate -o json rules check
    """
    from headgate.config.settings import load_settings
    from headgate.errors import DeclarationError

    checked = check_files(load_settings(), files, strict=strict)
    if console.format != "text":
        console.data(checked)
    else:
        for note in checked.notes[:_MOST_NOTES]:
            console.warn(note.sentence())
        if len(checked.notes) > _MOST_NOTES:
            console.warn(f"{len(checked.notes) - _MOST_NOTES} more notes: -o json shows all")
    if checked.faults:
        raise DeclarationError(checked.faults)
    if strict and checked.notes:
        raise DeclarationError(checked.notes)
    console.done(_words(checked))


def check_files(settings: Settings, files: tuple[Path, ...], *, strict: bool = False) -> Checked:
    """What is to be said of these files; of all rule sets where none is given."""
    from headgate.errors import DeclarationError
    from headgate.quality.spec.loader import rule_files

    chosen = tuple(path.resolve() for path in files) or rule_files(settings.root)
    judged: list[JudgedFile] = []
    faults: list[Fault] = []
    for path in chosen:
        try:
            judged.append(load_judged_file(settings, path))
        except DeclarationError as error:
            faults += error.faults
    faults += _twice(settings.root, chosen)
    notes = [note for file in judged for note in file.notes]
    return Checked(
        files=tuple(below(path, settings.root) for path in chosen),
        tables=tuple(table.table.name for file in judged for table in file.tables),
        rules=sum(len(table.rules) for file in judged for table in file.tables),
        aggregates=sum(len(table.aggregates) for file in judged for table in file.tables),
        faults=_below(faults, settings.root),
        notes=_below(notes, settings.root),
        passed=not faults and not (strict and notes),
    )


def load_judged_file(settings: Settings, path: Path) -> JudgedFile:
    """A rule set with `${TOPIC}` as it is for the dataset that the file is named after."""
    from headgate.quality.compile.resolve import load_judged

    return load_judged(path, settings.topics_of(path.stem))


def _twice(root: Path, chosen: tuple[Path, ...]) -> Iterator[Fault]:
    """Tables are known by name alone, so no two files may have one of the same name.

    A file that stands elsewhere, as a draft does, is held against those given with it alone.
    """
    from headgate.errors import DeclarationError, Fault
    from headgate.quality.spec.loader import places_of_tables, rule_files

    shipped = rule_files(root)
    beside = shipped if set(chosen) & set(shipped) else ()
    seen: dict[str, str] = {}
    for path in dict.fromkeys((*beside, *chosen)):
        try:
            places = places_of_tables(path)
        except DeclarationError:
            continue
        for at, (name, line) in enumerate(places):
            first = seen.setdefault(name.lower(), below(path, root))
            if first != below(path, root) and path in chosen:
                what = f"`{name}` is a table of {first} as well"
                yield Fault(str(path), line, f"tables[{at}].name", what, "Name it otherwise.")


def _below(faults: list[Fault], root: Path) -> tuple[Fault, ...]:
    return tuple(replace(fault, file=below(Path(fault.file), root)) for fault in faults)


def _words(checked: Checked) -> str:
    if not checked.files:
        return "there is no rule set"
    counts = [_counted(len(checked.tables), "table"), _counted(checked.rules, "rule"), "no faults"]
    counts += [_counted(len(checked.notes), "note")] if checked.notes else []
    return f"{', '.join(checked.files)}: {', '.join(counts)}"


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


@dataclass(frozen=True)
class Listed:
    """One table as `rules list` prints it."""

    table: str
    file: str
    kind: str
    sources: str
    rules: int
    aggregates: int
    window: str


@click.command()
def rules_list() -> None:
    """List the tables that rule sets declare, where their rows come from and how many rules they have.

    \b
    Examples:
      headgate rules list
      headgate -o json rules list
    """
    from headgate.config.settings import load_settings
    from headgate.quality.spec.loader import rule_files

    settings = load_settings()
    files = rule_files(settings.root)
    console.data([listed for path in files for listed in _listed(settings, path)])


def _listed(settings: Settings, path: Path) -> Iterator[Listed]:
    from headgate.errors import DeclarationError
    from headgate.quality.spec.loader import tables_in

    file = below(path, settings.root)
    try:
        for table in load_judged_file(settings, path).tables:
            yield _row(table, file)
    except DeclarationError as error:
        for name in tables_in(path):
            yield Listed(name, file, f"not valid: {error.what}", "", 0, 0, "")


def _kind(table: RuleTable) -> str:
    return "reconciliation" if table.is_pair else "quality"


def _row(judged: JudgedTable, file: str) -> Listed:
    from headgate.declarations.types import in_words

    table = judged.table
    sources = ", ".join(str(source.topic or source.iceberg) for source in table.sources.values())
    return Listed(
        table.name,
        file,
        _kind(table),
        sources,
        len(judged.rules),
        len(judged.aggregates),
        in_words(judged.rule_set.metrics.window),
    )


@dataclass(frozen=True)
class Tested:
    """What `rules test` found."""

    tests: int
    failed: int
    results: tuple[TestResult, ...]
    untested: tuple[str, ...]


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def rules_test(files: tuple[Path, ...]) -> None:
    """Judge given rows and hold what comes out against what is expected.

    The tests of rules/orders.yml stand beside it in rules/orders.tests.yml. FILES are rule sets or
    their tests; without any, all are run. They run in Python, without Spark, in the same language
    that Spark runs.

    \b
    Examples:
      headgate rules test
      headgate rules test rules/orders.yml
      headgate -o json rules test
    """
    from headgate.config.settings import load_settings
    from headgate.errors import DifferenceError

    settings = load_settings()
    with faults_below(settings.root):
        tested = test_files(settings, files)
    console.data(tested, text="\n".join(_lines(tested)))
    for file in tested.untested:
        console.warn(f"{file} has no tests")
    if tested.failed:
        raise DifferenceError(
            f"{tested.failed} of {tested.tests} tests fail",
            why="the rules do not say what the tests expect",
            fix="correct the rule or the test; headgate rules explain TABLE tells rules in words",
        )
    console.done(f"{tested.tests} tests pass")


def test_files(settings: Settings, files: tuple[Path, ...]) -> Tested:
    """Runs the tests of these files, or of all rule sets."""
    from headgate.quality.evaluator import run_tests
    from headgate.quality.spec.rule_tests import load_tests, rule_tests_beside

    results: list[TestResult] = []
    untested: list[str] = []
    for path in _rule_sets(settings, files):
        judged = load_judged_file(settings, path)
        beside = rule_tests_beside(path)
        if not beside.is_file():
            untested.append(below(path, settings.root))
            continue
        tests = load_tests(beside, tuple(table.table.name for table in judged.tables))
        results += run_tests(judged.tables, tests)
    shown = tuple(replace(r, file=below(Path(r.file), settings.root)) for r in results)
    failed = sum(not result.passed for result in shown)
    return Tested(len(shown), failed, shown, tuple(untested))


def _rule_sets(settings: Settings, files: tuple[Path, ...]) -> Iterator[Path]:
    from headgate.quality.spec.loader import rule_files
    from headgate.quality.spec.rule_tests import SUFFIX, rules_beside

    if not files:
        yield from rule_files(settings.root)
    for path in files:
        whole = path.resolve()
        yield rules_beside(whole) if whole.stem.endswith(SUFFIX) else whole


def _lines(tested: Tested) -> Iterator[str]:
    """Only what differs: a person looks for what to mend."""
    for result in tested.results:
        if result.passed:
            continue
        yield f"✗ {result.table}: {result.name}  ({result.file}:{result.line})"
        for difference in result.differences:
            row = f"row {difference.row}, " if len({d.row for d in result.differences}) > 1 else ""
            yield f"    {row}{difference.what}"
            yield f"      expected  {difference.expected}"
            yield f"      got       {difference.got}"
