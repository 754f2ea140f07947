"""`headgate filters`: some verbs a module, loaded only when one of them is called."""

from __future__ import annotations

import importlib

import click

from headgate.cli.verbs import Verbs

VERBS: dict[str, str] = {
    "approve": "say yes to the revision that you looked at",
    "check": "every fault of the filters' files at once",
    "compile": "the SQL that filters are run as",
    "consumer": "run the consumer of a dealer's topic",
    "create": "submit a filter's file",
    "delete": "take a filter away; one that runs needs a second person",
    "deploy": "let an approved filter run, and wait until it does",
    "diff": "what two versions say differently",
    "drift": "where git and the ops store disagree, and mending it",
    "dry-run": "what a filter would have matched of the last events",
    "explain": "explain filters in words, with their SQL and counts",
    "generate": "the SQL of a filter that was submitted",
    "get": "one filter and how it stands",
    "ledger": "which revision judged which offsets",
    "list": "the filters and how they stand",
    "pause": "send nothing for now",
    "reject": "say no, and why",
    "resume": "go on after a pause",
    "revisions": "every version of a filter",
    "rollback": "let the version before run again",
    "status": "what is wanted and what is seen",
    "update": "submit a changed file as a new version",
    "validate": "whether a filter or a file is valid",
    "watch": "what happens, as it happens",
}
# Verbs that stand together in a module; the others are the `command` of headgate.cli.filters_<verb>.
TOGETHER: dict[str, tuple[str, ...]] = {
    "read": ("list", "get", "status", "revisions", "diff", "ledger"),
    "write": ("create", "update", "delete"),
    "review": ("generate", "validate", "dry-run", "approve", "reject"),
    "deploy": ("deploy", "rollback", "pause", "resume"),
}
MODULES = {verb: module for module, verbs in TOGETHER.items() for verb in verbs}


class FilterVerbs(Verbs):
    """As elsewhere, but a module may have several verbs, by their names."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in MODULES:
            return super().get_command(ctx, cmd_name)
        module = importlib.import_module(f"headgate.cli.filters_{MODULES[cmd_name]}")
        return module.COMMANDS[cmd_name]


@click.command(cls=FilterVerbs, noun="filters", verbs=VERBS)
def group() -> None:
    """Route events to consumers: submit, approve, deploy, follow and undo filters.

    All but `check`, `compile`, `explain` and `consumer` ask the API: HEADGATE_API_URL says where it
    is (a server on this machine is found by itself), HEADGATE_API_KEY who you are.

    \b
    Examples:
      headgate filters create schemas/v1/filters/service-by-dealer-001.json
      headgate filters approve service-by-dealer-001
      headgate filters deploy service-by-dealer-001
      headgate filters consumer consumers/dealer-001/consumer.yml
    """
