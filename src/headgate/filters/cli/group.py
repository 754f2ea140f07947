"""`headgate filters`: its verbs, each imported only when it is called."""

from __future__ import annotations

import click

from headgate.terminal.lazy_group import LazyCommands

VERBS: dict[str, tuple[str, str]] = {
    "approve": (
        "say yes to the revision that you looked at",
        "headgate.filters.cli.review:approve",
    ),
    "check": (
        "every fault of the filters' files at once",
        "headgate.filters.cli.local:filters_check",
    ),
    "compile": (
        "the SQL that filters are run as",
        "headgate.filters.cli.local:filters_compile",
    ),
    "consumer": (
        "run the consumer of a dealer's topic",
        "headgate.filters.cli.local:filters_consumer",
    ),
    "create": ("submit a filter's file", "headgate.filters.cli.changes:create"),
    "delete": (
        "take a filter away; one that runs needs a second person",
        "headgate.filters.cli.changes:delete",
    ),
    "deploy": (
        "let an approved filter run, and wait until it does",
        "headgate.filters.cli.changes:deploy",
    ),
    "diff": ("what two versions say differently", "headgate.filters.cli.queries:diff"),
    "drift": (
        "where git and the ops store disagree, and mending it",
        "headgate.filters.cli.queries:filters_drift",
    ),
    "dry-run": (
        "what a filter would have matched of the last events",
        "headgate.filters.cli.review:dry_run",
    ),
    "explain": (
        "explain filters in words, with their SQL and counts",
        "headgate.filters.cli.local:filters_explain",
    ),
    "generate": ("the SQL of a filter that was submitted", "headgate.filters.cli.review:generate"),
    "get": ("one filter and how it stands", "headgate.filters.cli.queries:get"),
    "ledger": ("which revision judged which offsets", "headgate.filters.cli.queries:ledger"),
    "list": ("the filters and how they stand", "headgate.filters.cli.queries:list_filters"),
    "pause": ("send nothing for now", "headgate.filters.cli.changes:pause"),
    "reject": ("say no, and why", "headgate.filters.cli.review:reject"),
    "resume": ("go on after a pause", "headgate.filters.cli.changes:resume"),
    "revisions": ("every version of a filter", "headgate.filters.cli.queries:revisions"),
    "rollback": (
        "let the version before run again",
        "headgate.filters.cli.changes:rollback",
    ),
    "status": ("what is wanted and what is seen", "headgate.filters.cli.queries:status"),
    "update": (
        "submit a changed file as a new version",
        "headgate.filters.cli.changes:update",
    ),
    "validate": ("whether a filter or a file is valid", "headgate.filters.cli.review:validate"),
    "watch": ("what happens, as it happens", "headgate.filters.cli.queries:filters_watch"),
}


@click.command(cls=LazyCommands, lazy=VERBS)
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
