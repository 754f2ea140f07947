"""`headgate rules test`: given rows against what must be said of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console
from headgate.terminal.project import below, faults_below

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.quality.testing import TestResult


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
    from headgate.quality.cli.rules_check import load_judged_file
    from headgate.quality.spec.rule_tests import load_tests, rule_tests_beside
    from headgate.quality.testing import run_tests

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
    from headgate.quality.spec.rule_tests import SUFFIX, rules_beside
    from headgate.quality.spec.rules_loader import rule_files

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
