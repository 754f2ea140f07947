"""The declared tables with two sources, for the commands that read what their reconciliation found."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.quality.spec.limits import Limits
    from headgate.quality.spec.rule_set import RuleTable


def pair_limits(settings: Settings, table: str) -> Limits:
    """How long the sides of a pair wait: as deployed, else as declared."""
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.quality.revision import declared_rules, deployed, fetch

    declared_pair(settings, table)
    with OpsStore.open(settings.ops_store_url) as store:
        kept = deployed(store, table)
        rules = fetch(store, kept) if kept else declared_rules(settings, table)
    limits = rules.limits or declared_rules(settings, table).limits
    assert limits is not None
    return limits


def declared_pair(settings: Settings, table: str) -> RuleTable:
    """The table's declaration; raises UsageError where it has one source."""
    from headgate.errors import UsageError
    from headgate.quality.revision import declared_table

    found = declared_table(settings.root, table).table
    if found.reconcile is None:
        raise UsageError(
            f"`{table}` is not reconciled",
            why="it has one source",
            fix=f"headgate rules report {table}",
        )
    return found


def pairs_of(settings: Settings) -> tuple[str, ...]:
    """The names of all declared pairs; files with faults are passed over."""
    from headgate.core.sql.render import PLACEHOLDERS
    from headgate.quality.spec.rules_loader import read_rules, rule_files

    readings = (read_rules(path, PLACEHOLDERS) for path in rule_files(settings.root))
    return tuple(
        table.name
        for reading in readings
        if reading.declared is not None
        for table in reading.declared.value.tables
        if table.reconcile is not None
    )
