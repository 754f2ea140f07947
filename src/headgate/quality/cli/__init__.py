"""`headgate rules`: check, test, compile, deploy and report on rule sets.

`check` has the verbs that read rule sets, `compile` those that show and write SQL, `revisions` explains,
compares and deploys, `report` reports on a run, `suggest` proposes rules. Each verb is imported when it is called.
"""

from __future__ import annotations

import click

from headgate.terminal.lazy_group import LazyCommands

VERBS: dict[str, tuple[str, str]] = {
    "check": (
        "every fault of the rule sets at once",
        "headgate.quality.cli.check:rules_check",
    ),
    "compile": ("compile rule sets to SQL", "headgate.quality.cli.compile:rules_compile"),
    "deploy": (
        "let the declared rules judge from the next batch on",
        "headgate.quality.cli.revisions:rules_deploy",
    ),
    "diff": (
        "what two revisions say differently, and of which rows",
        "headgate.quality.cli.revisions:rules_diff",
    ),
    "explain": (
        "each rule in words, its SQL and its last counts",
        "headgate.quality.cli.revisions:rules_explain",
    ),
    "list": ("the tables that rule sets declare", "headgate.quality.cli.check:rules_list"),
    "notebook": (
        "a notebook over a table's results and metrics",
        "headgate.quality.cli.compile:rules_notebook",
    ),
    "report": (
        "what a run found, as a page, JSON and text",
        "headgate.quality.cli.report:rules_report",
    ),
    "show": ("show the SQL that a table compiles to", "headgate.quality.cli.compile:rules_show"),
    "suggest": (
        "rules that the values of a file suggest",
        "headgate.quality.cli.suggest:rules_suggest",
    ),
    "test": (
        "given rows against what must be said of them",
        "headgate.quality.cli.check:rules_test",
    ),
}


@click.command(cls=LazyCommands, lazy=VERBS)
def group() -> None:
    """Declare what must hold of rows, and see where it does not.

    \b
    Examples:
      headgate rules list
      headgate rules check
      headgate rules test
    """
