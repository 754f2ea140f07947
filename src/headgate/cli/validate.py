"""`headgate validate`: the four-stage validation."""

from __future__ import annotations

import click

from headgate.cli.console import console


@click.command("validate")
def command() -> None:
    """Check services, jobs, data and marts; exit 5 when a check fails, 8 when nothing answers.

    \b
    Examples:
      headgate validate
      headgate -o json validate
    """
    from headgate.checks import validate
    from headgate.settings import load_settings

    report = validate.run_validation(load_settings(), watch=_tell)
    console.data(report, text=validate.text(report))
    validate.refuse_unless_ok(report)


def _tell(stage: str) -> None:
    console.say(f"checking {stage} …")
