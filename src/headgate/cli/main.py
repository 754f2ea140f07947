"""The `headgate` command: one noun a module, loaded only when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from typing import NoReturn

import click

from headgate import __version__
from headgate.cli.console import FORMATS, console
from headgate.cli.verbs import LazyCommands
from headgate.errors import HeadgateError, InterruptedByUserError

NOUNS: dict[str, str] = {
    "audit": "read, check and export who did what to filters",
    "certify": "prove that every record is accounted for",
    "config": "choose, show and check settings",
    "connect": "build the Connect plugins; deploy and watch connectors",
    "dataset": "check and compile dataset manifests",
    "dbt": "build and test the marts",
    "demo": "run the whole path on sample data",
    "dlq": "browse dead letters and send them again",
    "doctor": "say what this machine has and lacks",
    "engine": "run the long-running Spark application",
    "feed": "make sample data and send it to the topic",
    "filters": "submit, approve, deploy, follow and undo filters",
    "hash": "hash rows by contract, and prove that all sides agree",
    "job": "run, start, watch, stop and mend jobs",
    "keys": "make, list and revoke keys of the API",
    "lake": "count and wait for tables",
    "ledger": "show, export and rebuild the ledger",
    "local": "start and stop the embedded services",
    "maintain": "compact, expire and vacuum tables",
    "metrics": "list, show and send metrics",
    "obs": "start and stop Prometheus and Grafana",
    "reconcile": "compare both sides key by key; tell, explain and repair differences",
    "rules": "check, test and compile rule sets",
    "serve": "answer the API of filters",
    "sql": "query the running engine",
    "topics": "create and show topics",
    "validate": "run the four-stage validation",
}


class LazyGroup(LazyCommands):
    """Imports a noun's module only when that noun is called, so that help stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(NOUNS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in NOUNS:
            return None
        module = importlib.import_module(f"headgate.cli.{cmd_name}")
        return getattr(module, "group", None) or module.command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Nouns"):
            formatter.write_dl([(noun, NOUNS[noun]) for noun in self.list_commands(ctx)])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-o", "--output", type=click.Choice(FORMATS), default="text", help="How to print the data."
)
@click.option("--debug", is_flag=True, help="Show the trace of an error.")
@click.version_option(__version__, prog_name="headgate")
def cli(output: str, debug: bool) -> None:
    """Move events through Kafka into a lakehouse, and account for every record.

    \b
    Examples:
      headgate local up
      headgate job run bronze
      headgate -o json certify
    """
    console.format = output
    console.debug = debug


def fail(error: HeadgateError) -> NoReturn:
    console.error(error)
    sys.exit(error.exit_code)


def main() -> None:
    """Run the `headgate` command line."""
    run(cli)


def run(command: click.Command) -> None:
    """Run a command line; every HeadgateError becomes three lines and its exit code."""
    debug = "--debug" in sys.argv or bool(os.environ.get("HEADGATE_DEBUG"))
    try:
        command.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except (KeyboardInterrupt, click.exceptions.Abort):
        fail(InterruptedByUserError("interrupted", fix="run the same command again to go on"))
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except HeadgateError as error:
        if debug:
            raise
        fail(error)
    except Exception as error:
        failure = None if debug else store_failure(error)
        if failure is None:
            raise
        fail(failure)


def store_failure(error: Exception) -> HeadgateError | None:
    """A failure of the ops store's database as an error of ours; None for anything else."""
    if "sqlalchemy" not in sys.modules:  # no store was opened, and to import it takes long
        return None
    from headgate.store.database import explain_failure

    return explain_failure(error)


if __name__ == "__main__":
    main()
