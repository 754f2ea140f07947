"""`headgate rules`: one verb a module, loaded only when it is called."""

from __future__ import annotations

import click

from headgate.cli.verbs import LazyCommands

VERBS: dict[str, tuple[str, str]] = {
    "check": ("every fault of the rule sets at once", "headgate.cli.rules_check:rules_check"),
    "compile": ("compile rule sets to SQL", "headgate.cli.rules_compile:rules_compile"),
    "deploy": (
        "let the declared rules judge from the next batch on",
        "headgate.cli.rules_deploy:rules_deploy",
    ),
    "diff": (
        "what two revisions say differently, and of which rows",
        "headgate.cli.rules_diff:rules_diff",
    ),
    "explain": (
        "each rule in words, its SQL and its last counts",
        "headgate.cli.rules_explain:rules_explain",
    ),
    "list": ("the tables that rule sets declare", "headgate.cli.rules_list:rules_list"),
    "notebook": (
        "a notebook over a table's results and metrics",
        "headgate.cli.rules_notebook:rules_notebook",
    ),
    "report": (
        "what a run found, as a page, JSON and text",
        "headgate.cli.rules_report:rules_report",
    ),
    "show": ("show the SQL that a table compiles to", "headgate.cli.rules_show:rules_show"),
    "suggest": (
        "rules that the values of a file suggest",
        "headgate.cli.rules_suggest:rules_suggest",
    ),
    "test": ("given rows against what must be said of them", "headgate.cli.rules_test:rules_test"),
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
