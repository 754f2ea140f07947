"""`headgate engine`: the long-running Spark application."""

from __future__ import annotations

import click

from headgate.terminal.cli_console import console


@click.group()
def group() -> None:
    """Run the engine that hosts the jobs."""


@group.command()
def prepare() -> None:
    """Fetch the JVM bundles, compile the Spark functions and make the engine's class archive, once."""
    from headgate.core.runtime.class_archive import Preparation, prepare_spark_archive
    from headgate.core.runtime.engine_bundles import bundle

    for name in ("kafka", "spark"):
        bundle(name)
    console.say("preparing the engine's class archive, once (about 30 s)")
    outcomes = {
        Preparation.MADE: "the engine starts quicker now",
        Preparation.PRESENT: "the engine was prepared already",
        Preparation.UNSUPPORTED: "the jars are there; this Java keeps no class archive",
    }
    console.done(outcomes[prepare_spark_archive()])


@group.command()
def run() -> None:
    """Host jobs until stopped; a second engine stands by.

    \b
    Examples:
      headgate engine run
      SPARK_MASTER='local[4]' headgate engine run
    """
    from headgate.config.settings import load_settings

    settings = load_settings()
    # Wrong settings are refused before PySpark is loaded.
    from headgate.core.engine.host import serve

    serve(settings, console.say)
