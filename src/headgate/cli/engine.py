"""`headgate engine`: the long-running Spark application."""

from __future__ import annotations

import click

from headgate.cli.console import console


@click.group()
def group() -> None:
    """Run the engine that hosts the jobs."""


@group.command()
def run() -> None:
    """Host jobs until stopped; a second engine stands by.

    \b
    Examples:
      headgate engine run
      SPARK_MASTER='local[4]' headgate engine run
    """
    from headgate.jobs.host import serve
    from headgate.settings import load_settings

    serve(load_settings(), console.say)
