"""`headgate certify` and `headgate validate`."""

from __future__ import annotations

from pathlib import Path

import click

from headgate.errors import DifferenceError, UsageError
from headgate.terminal.console import console
from headgate.terminal.project import active_dataset


@click.command("certify")
@click.option("--dataset", "names", multiple=True, help="This dataset. Default: the active one.")
@click.option("--all", "everything", is_flag=True, help="All datasets, rule tables and routers.")
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the certificate.")
@click.option("--count", is_flag=True, help="Count the topic's records however many they are.")
def certify_command(
    names: tuple[str, ...], everything: bool, out: Path | None, count: bool
) -> None:
    """Sum the ledger, compare it with the tables and the broker, and write a certificate.

    The records of up to 2,000,000 offsets are counted again on the topic; --count has no limit.

    \b
    Examples:
      headgate certify
      headgate certify --all
      headgate -o json certify --out proof.json
    """
    from headgate.certify import certificate
    from headgate.config.settings import load_settings

    if names and everything:
        raise UsageError("--dataset and --all exclude each other")
    settings = load_settings()
    names = () if everything else names or (active_dataset(settings),)
    found = certificate.run_certification(settings, names, however_many=count)
    file = certificate.write(found, out or certificate.default_file(settings, found))
    ledger = file.with_suffix(".ledger.jsonl").name
    console.data(certificate.document(found, ledger), text=certificate.text(found))
    console.say(f"written to {file} and {ledger} beside it")
    if not everything and (others := certificate.left_out(found)):
        console.say(f"not looked at: {', '.join(others)}; --all certifies everything")
    if not found.holds:
        raise DifferenceError(
            "the account does not add up",
            why="\n".join(certificate.broken(found)),
            fix="process what is left (headgate job run), or look at headgate ledger show",
        )


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
