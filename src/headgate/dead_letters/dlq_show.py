"""`headgate dlq show`: one dead letter, tagged values masked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from headgate.terminal.cli_console import console, in_one_line

if TYPE_CHECKING:
    from headgate.dead_letters.masking import ShownLetter


@click.command()
@click.argument("letter_id", metavar="ID")
@click.option("--reveal", is_flag=True, help="Show tagged values too.")
def dlq_show(letter_id: str, reveal: bool) -> None:
    """Show one dead letter: where it came from, why it was refused, and what it says.

    Columns that a rule set or a hash contract tags as sensitive are masked, and so is a value that
    is no JSON, since nobody can tell which part of it is tagged.

    \b
    Examples:
      headgate dlq show 0a1b2c3d4e5f60718293
      headgate dlq show 0a1b2c3d4e5f60718293 --reveal
    """
    from headgate.config.settings import load_settings
    from headgate.dead_letters.masking import hidden_names, shown
    from headgate.dead_letters.redriving import open_redriving

    settings = load_settings()
    with open_redriving(settings) as redriving:
        letter = redriving.letters.letter(letter_id)
        place = redriving.redriven().get(letter_id, "")
    found = shown(letter, hidden_names(settings), reveal=reveal, redriven=place)
    console.data(found, text=_text(found))


def _text(found: ShownLetter) -> str:
    facts = found.facts
    lines = {
        "job": f"{facts.job}, revision {facts.revision[:12] or 'none'}",
        "reason": f"{facts.reason_code}: {in_one_line(facts.reason)}",
        "origin": facts.origin or "a row of a table",
        "written": facts.timestamp,
        "refused": facts.refused_at,
        "attempts": found.attempts or "",
        "sent again": found.redriven,
        "key": "(none)" if found.key is None else in_one_line(found.key),
    }
    told = [f"  {name:<10} {value}" for name, value in lines.items() if value]
    headers = [f"  {name}: {in_one_line(str(value))}" for name, value in found.headers.items()]
    value = json.dumps(found.value, indent=2, ensure_ascii=True)
    return "\n".join(
        [
            facts.id,
            *told,
            *(["headers", *headers] if headers else []),
            f"value ({facts.bytes:,} bytes with its key)",
            value,
        ]
    )
