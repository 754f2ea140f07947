"""`headgate rules`: one verb a module, loaded only when it is called."""

from __future__ import annotations

import click

from headgate.cli.verbs import Verbs

# Each verb is the `command` of headgate.cli.rules_<verb>.
VERBS: dict[str, str] = {
    "check": "every fault of the rule sets at once",
    "compile": "compile rule sets to SQL",
    "deploy": "let the declared rules judge from the next batch on",
    "diff": "what two revisions say differently, and of which rows",
    "explain": "each rule in words, its SQL and its last counts",
    "list": "the tables that rule sets declare",
    "notebook": "a notebook over a table's results and metrics",
    "report": "what a run found, as a page, JSON and text",
    "show": "show the SQL that a table compiles to",
    "suggest": "rules that the values of a file suggest",
    "test": "given rows against what must be said of them",
}


@click.command(cls=Verbs, noun="rules", verbs=VERBS)
def group() -> None:
    """Declare what must hold of rows, and see where it does not.

    \b
    Examples:
      headgate rules list
      headgate rules check
      headgate rules test
    """
