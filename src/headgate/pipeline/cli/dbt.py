"""`headgate dbt`: build, test and document the marts over the silver tables' current versions."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from headgate.errors import DifferenceError, OperationError
from headgate.terminal.console import Progress, console
from headgate.terminal.project import active_dataset

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.pipeline.dbt.models import DbtReport
    from headgate.pipeline.dbt.run import Step

select_option = click.option(
    "-s", "--select", multiple=True, metavar="MODEL", help="Only these models, as dbt selects them."
)


@click.group()
def group() -> None:
    """Build and test the marts."""


@group.command()
@select_option
@click.option(
    "--full-refresh/--incremental",
    default=True,
    help="Rebuild everything (the default), or only add what is new to incremental models.",
)
def build(select: tuple[str, ...], full_refresh: bool) -> None:
    """Build and test the models that the dataset's silver table feeds.

    Other datasets' models are left alone. A model that reads several silver tables is built when
    all of them are there.

    \b
    Examples:
      headgate dbt build
      headgate dbt build --select +mart_daily_revenue
      DATASET=orders headgate dbt build
    """
    from headgate.config.settings import load_settings
    from headgate.pipeline.dbt import run as dbt

    settings = load_settings()
    dataset = active_dataset(settings)
    tell(
        watched(
            "dbt build",
            lambda watch: dbt.build(settings, dataset, select, watch, full_refresh=full_refresh),
        )
    )


@group.command()
@select_option
def test(select: tuple[str, ...]) -> None:
    """Test the marts as they are: contracts, data tests and singular tests."""
    from headgate.config.settings import load_settings
    from headgate.pipeline.dbt import run as dbt

    settings = load_settings()
    dataset = active_dataset(settings)
    tell(watched("dbt test", lambda watch: dbt.test(settings, dataset, select, watch)))


@group.command()
def docs() -> None:
    """Write the models' documentation as one page."""
    from headgate.config.settings import load_settings
    from headgate.pipeline.dbt import run as dbt

    settings = load_settings()
    page = dbt.docs(settings, active_dataset(settings))
    console.data({"page": str(page)}, text=str(page))


def watched(words: str, run: Callable[[Callable[[Step], None]], DbtReport]) -> DbtReport:
    """The report of `run`, with progress from its first step on: time left leaves out the start."""
    console.say(f"{words}: reading the project")
    with ExitStack() as stack:
        shown: list[Progress] = []

        def watch(step: Step) -> None:
            if not shown:
                shown.append(stack.enter_context(console.progress(words, step.total)))
            shown[0].update(step.done, f"{words}: {step.name}")

        return run(watch)


def tell(report: DbtReport) -> None:
    """Print the report; raises when something in it is wrong."""
    console.data(report, text=as_text(report))
    for data_test in report.tests:
        if data_test.status == "warn":
            console.warn(f"{data_test.name}: {data_test.message}")
    for waiting in report.waiting:
        console.say(f"{waiting.model} is left out: no table {', '.join(waiting.tables)} yet")
    if report.ok:
        return
    if not (report.models or report.tests):
        raise OperationError(
            "dbt has nothing to do for this dataset",
            why="no model reads its silver table",
            fix="headgate dataset scaffold, which writes its staging model",
        )
    if report.broken:
        raise OperationError(
            f"dbt could not build {len(report.broken)} models",
            why=", ".join(report.broken),
            fix="read the messages in dbt/logs/dbt.log under HEADGATE_HOME (.headgate)",
        )
    raise DifferenceError(
        "dbt found a difference" if report.tests else "dbt tested nothing",
        why="\n".join(reasons(report)),
        fix="the SQL of each test is in dbt/target/compiled under HEADGATE_HOME (.headgate)",
    )


def reasons(report: DbtReport) -> list[str]:
    bad = [t for t in report.tests if t.status not in ("pass", "warn")]
    return [
        *(f"{t.name}: {t.status}, {t.message or f'{t.failures} rows'}" for t in bad),
        *(f"{name} is tested but empty" for name in report.empty),
    ]


def as_text(report: DbtReport) -> str:
    named = [(f"{model.schema}.{model.name}", model) for model in report.models]
    width = max((len(name) for name, _ in named), default=0)
    lines = [
        f"{name:<{width}}  {'-' if model.rows is None else f'{model.rows:,}':>10}  {model.status}"
        for name, model in named
    ]
    tests = f"{report.passed} passed, {report.warned} warned, {report.failed} failed"
    return "\n".join([*lines, f"tests: {tests} ({report.seconds:g} s)"])
