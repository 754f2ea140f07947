"""`headgate certify`: prove that every record is accounted for."""

from __future__ import annotations

from pathlib import Path

import click

from headgate.cli.console import console
from headgate.errors import DifferenceError


@click.command("certify")
@click.option("--dataset", "names", multiple=True, help="Only this dataset; all by default.")
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the certificate.")
@click.option("--count", is_flag=True, help="Count the topic's records however many they are.")
def command(names: tuple[str, ...], out: Path | None, count: bool) -> None:
    """Sum the ledger, compare it with the tables and the broker, and write a certificate.

    The records of up to 2,000,000 offsets are counted again on the topic; --count has no limit.

    \b
    Examples:
      headgate certify
      headgate -o json certify --out proof.json
    """
    from headgate.checks import certificate
    from headgate.settings import load_settings

    settings = load_settings()
    found = certificate.run_certification(settings, names, however_many=count)
    file = certificate.write(found, out or certificate.default_file(settings, found))
    ledger = file.with_suffix(".ledger.jsonl").name
    console.data(certificate.document(found, ledger), text=certificate.text(found))
    console.say(f"written to {file} and {ledger} beside it")
    if not found.holds:
        raise DifferenceError(
            "the account does not add up",
            why="\n".join(certificate.broken(found)),
            fix="process what is left (headgate job run), or look at headgate ledger show",
        )
