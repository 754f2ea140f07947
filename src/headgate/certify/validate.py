"""`headgate validate`: the four-stage validation."""

from __future__ import annotations

import click

from headgate.errors import UsageError
from headgate.terminal.cli_console import console
from headgate.terminal.project import active_dataset


@click.command("validate")
@click.option("--all", "everything", is_flag=True, help="Every dataset that was ever processed.")
def validate_command(everything: bool) -> None:
    """Check services, jobs, data and marts; exit 5 when a check fails, 8 when nothing answers.

    The data and marts are those of the active dataset, or with --all of every one.

    \b
    Examples:
      headgate validate
      headgate validate --all
      headgate -o json validate
    """
    from headgate.certify import validation as validate
    from headgate.config.settings import load_settings

    settings = load_settings()
    if not everything:
        report = validate.run_validation(settings, _tell, active_dataset(settings))
        console.data(report, text=validate.text(report))
        validate.refuse_unless_ok(report)
        return
    names = validate.processed_datasets(settings)
    if not names:
        raise UsageError("no dataset was ever processed", fix="make process")
    reports = [validate.run_validation(settings, _tell, name) for name in names]
    console.data({"datasets": reports}, text="\n\n".join(map(validate.text, reports)))
    validate.refuse_unless_ok(*reports)


def _tell(stage: str) -> None:
    console.say(f"checking {stage} …")
