"""`headgate filters`: some verbs a module, loaded only when one of them is called."""

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
        "headgate.filters.cli.filters_check:filters_check",
    ),
    "compile": (
        "the SQL that filters are run as",
        "headgate.filters.cli.filters_compile:filters_compile",
    ),
    "consumer": (
        "run the consumer of a dealer's topic",
        "headgate.filters.cli.filters_consumer:filters_consumer",
    ),
    "create": ("submit a filter's file", "headgate.filters.cli.filters_write:create"),
    "delete": (
        "take a filter away; one that runs needs a second person",
        "headgate.filters.cli.filters_write:delete",
    ),
    "deploy": (
        "let an approved filter run, and wait until it does",
        "headgate.filters.cli.filters_deploy:deploy",
    ),
    "diff": ("what two versions say differently", "headgate.filters.cli.filters_read:diff"),
    "drift": (
        "where git and the ops store disagree, and mending it",
        "headgate.filters.cli.filters_drift:filters_drift",
    ),
    "dry-run": (
        "what a filter would have matched of the last events",
        "headgate.filters.cli.review:dry_run",
    ),
    "explain": (
        "explain filters in words, with their SQL and counts",
        "headgate.filters.cli.filters_explain:filters_explain",
    ),
    "generate": ("the SQL of a filter that was submitted", "headgate.filters.cli.review:generate"),
    "get": ("one filter and how it stands", "headgate.filters.cli.filters_read:get"),
    "ledger": ("which revision judged which offsets", "headgate.filters.cli.filters_read:ledger"),
    "list": ("the filters and how they stand", "headgate.filters.cli.filters_read:list_filters"),
    "pause": ("send nothing for now", "headgate.filters.cli.filters_deploy:pause"),
    "reject": ("say no, and why", "headgate.filters.cli.review:reject"),
    "resume": ("go on after a pause", "headgate.filters.cli.filters_deploy:resume"),
    "revisions": ("every version of a filter", "headgate.filters.cli.filters_read:revisions"),
    "rollback": (
        "let the version before run again",
        "headgate.filters.cli.filters_deploy:rollback",
    ),
    "status": ("what is wanted and what is seen", "headgate.filters.cli.filters_read:status"),
    "update": (
        "submit a changed file as a new version",
        "headgate.filters.cli.filters_write:update",
    ),
    "validate": ("whether a filter or a file is valid", "headgate.filters.cli.review:validate"),
    "watch": ("what happens, as it happens", "headgate.filters.cli.filters_watch:filters_watch"),
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
