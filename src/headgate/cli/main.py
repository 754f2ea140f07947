"""The `headgate` command: loads a noun when it is called, and turns errors into messages and exit codes."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from headgate import __version__
from headgate.app import NOUNS
from headgate.errors import HeadgateError, InterruptedByUserError
from headgate.terminal.console import FORMATS, console
from headgate.terminal.lazy_group import LazyCommands


class Nouns(LazyCommands):
    """The nouns of the command line, each imported only when it is called."""

    SECTION = "Nouns"


@click.command(cls=Nouns, lazy=NOUNS, context_settings={"help_option_names": ["-h", "--help"]})
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
    from headgate.core.ledger.database import explain_failure

    return explain_failure(error)


if __name__ == "__main__":
    main()
