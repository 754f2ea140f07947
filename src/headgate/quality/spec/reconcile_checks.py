"""What must hold of a `reconcile:` section: sources, columns, times, topics, names, whole rows; and its defaults.

`Limits` are its times as a revision keeps them and as verdicts use them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from headgate.config.env_files import is_file
from headgate.declarations.errors import suggestion
from headgate.declarations.types import in_words
from headgate.errors import DeclarationError
from headgate.hashing.contract import contract_files, load_contract
from headgate.quality.spec.reconcile_section import GRACE, HORIZON, WINDOW, Reconcile, WholeRows
from headgate.quality.spec.rule_set import Rule, RuleSet, RuleTable
from headgate.quality.spec.source_checks import IDENTIFIER, IDENTIFIER_FIX, TOPIC, TOPIC_FIX, Found

_TWO_PARTS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*")
_WAITING = ("PENDING", "DELETE_PENDING")
_STORES = ("iceberg", "parquet", "cassandra")
# Verdicts know a hash by its 64 digits.
RECONCILED = "SHA-256"
_KEEP = ("a verdict is kept, whatever rules say of it", "Leave on_fail out.")


@dataclass(frozen=True)
class Limits:
    """Sides further apart than `window` are late; the deadline is `grace` beyond it."""

    window: timedelta = WINDOW
    grace: timedelta = GRACE
    horizon: timedelta = HORIZON

    @property
    def wait(self) -> timedelta:
        return self.window + self.grace


def limits_of(declared: Reconcile) -> Limits:
    return Limits(declared.window, declared.grace, declared.horizon)


def with_default_times(rule_set: RuleSet) -> RuleSet:
    """Every table with two sources has a `reconcile` section: one that is left out has the set's times."""
    tables = (
        replace(table, reconcile=_default_section(rule_set, table))
        if table.is_pair and table.reconcile is None
        else table
        for table in rule_set.tables
    )
    return replace(rule_set, tables=tuple(tables))


def _default_section(rule_set: RuleSet, table: RuleTable) -> Reconcile:
    window = rule_set.metrics.window
    grace = max(source.watermark for source in table.sources.values())
    return Reconcile(window=window, grace=grace, horizon=max(HORIZON, window + grace))


def reconcile_faults(rule_set: RuleSet) -> Found:
    """The faults of every section; what holds between a table and the rest of its file is among them."""
    for at, table in enumerate(rule_set.tables):
        place = f"tables[{at}]"
        yield from _view_names(place, rule_set, table)
        if table.reconcile is None:
            continue
        yield from _sources(f"{place}.reconcile", table)
        yield from _columns(f"{place}.reconcile", table, table.reconcile)
        yield from _times(f"{place}.reconcile", table.reconcile)
        yield from _topics(f"{place}.reconcile", table, table.reconcile)
        yield from _rows(f"{place}.reconcile", table.reconcile)
        yield from _rules("rules", rule_set.rules)
        yield from _rules(f"{place}.rules", table.rules)
        if table.on_fail != "keep":
            yield f"{place}.on_fail", *_KEEP


def _sources(place: str, table: RuleTable) -> Found:
    if not table.is_pair:
        yield place, "one source has nothing to be reconciled with", "Add the source `cloud`."
    for side, source in table.sources.items():
        if source.topic is None:
            what = f"the source `{side}` is a table, and two sources are reconciled by their topics"
            fix = "Compare two tables with `headgate reconcile tables`."
            yield f"{place.removesuffix('.reconcile')}.sources.{side}.iceberg", what, fix
        for name in source.sensitive:
            pointer = f"{place.removesuffix('.reconcile')}.sources.{side}.columns.{name}"
            what = f"`{name}` is sensitive, and states, audit and reports show what a side says"
            yield pointer, what, "Leave the column out, or send a hash of it."


def _columns(place: str, table: RuleTable, declared: Reconcile) -> Found:
    for side, source in table.sources.items() if declared.hash_version else ():
        kind = source.types.get(declared.hash_version or "")
        if kind is None:
            what = f"there is no column `{declared.hash_version}` in the source `{side}`"
            fix = suggestion(declared.hash_version or "", source.columns, "columns")
            yield f"{place}.hash_version", what, fix
        elif kind.name != "INT":
            what = f"`{declared.hash_version}` is {kind} in the source `{side}`"
            yield f"{place}.hash_version", what, "Declare it as INT."
    columns = table.sources["onprem"].types if "onprem" in table.sources else {}
    kind = columns.get(declared.action)
    if kind is None and declared.action != Reconcile().action:
        what = f"there is no column `{declared.action}` in the source `onprem`"
        yield f"{place}.action", what, suggestion(declared.action, columns, "columns")
    elif kind is not None and kind.name != "STRING":
        yield f"{place}.action", f"`{declared.action}` is {kind}", "Declare it as STRING."


def _times(place: str, declared: Reconcile) -> Found:
    wait = declared.window + declared.grace
    if declared.horizon < wait:
        what = f"state is forgotten after {in_words(declared.horizon)}, before a key is due"
        fix = f"Write {in_words(wait)} or more: window and grace together."
        yield f"{place}.horizon", what, fix


def _topics(place: str, table: RuleTable, declared: Reconcile) -> Found:
    read = {source.topic for source in table.sources.values()}
    named = {
        "status_topic": declared.status_topic,
        "audit.topic": declared.audit.topic,
        "repair.topic": declared.repair.topic,
    }
    for key, topic in named.items():
        if topic is None:
            continue
        if not TOPIC.fullmatch(topic):
            yield f"{place}.{key}", f"`{topic}` is not a topic name", TOPIC_FIX
        elif topic in read:
            yield f"{place}.{key}", f"`{topic}` is a topic that is read here", "Name another."
    if declared.audit.cassandra and not _TWO_PARTS.fullmatch(declared.audit.cassandra):
        what = f"`{declared.audit.cassandra}` is not of the form keyspace.table"
        yield f"{place}.audit.cassandra", what, "Write for example dq.audit."


def _rows(place: str, declared: Reconcile) -> Found:
    for side, rows in (("onprem", declared.rows.onprem), ("cloud", declared.rows.cloud)):
        if rows is not None:
            yield from _whole_rows(f"{place}.rows.{side}", rows)
    repair, rows = declared.repair, declared.rows
    reads = rows.onprem is not None and rows.cloud is not None and rows.cloud.cassandra is not None
    if repair.automatic and repair.to == "cassandra" and not reads:
        what = "rows cannot be sent again by themselves without knowing where both sides' are"
        fix = "Declare rows.onprem and rows.cloud.cassandra, or repair to a topic."
        yield f"{place}.repair.automatic", what, fix


def _whole_rows(place: str, rows: WholeRows) -> Found:
    given = {store: getattr(rows, store) for store in _STORES if getattr(rows, store)}
    if len(given) != 1:
        said = " and ".join(given) or "nothing"
        yield (
            place,
            f"rows are read from one place, and here stands {said}",
            ("Write iceberg, parquet or cassandra."),
        )
    for store in ("iceberg", "cassandra"):
        name = given.get(store)
        if name is not None and not _TWO_PARTS.fullmatch(name):
            what = f"`{name}` is not of the form {'schema' if store == 'iceberg' else 'keyspace'}.table"
            yield f"{place}.{store}", what, "Write both parts, with a dot between them."


def _rules(place: str, rules: tuple[Rule, ...]) -> Found:
    for at, rule in enumerate(rules):
        if rule.on_fail not in (None, "keep"):
            yield f"{place}[{at}].on_fail", *_KEEP
        if rule.emit is not None and rule.emit.dq_status in _WAITING:
            what = (
                f"{rule.emit.dq_status} is the status of keys that wait, and no rule judges those"
            )
            yield f"{place}[{at}].emit.dq_status", what, "Use another."


def _view_names(place: str, rule_set: RuleSet, table: RuleTable) -> Found:
    """Names of further views must be free: all views of a file stand beside each other."""
    taken = set(_compiled_sources(rule_set))
    for pointer, name in _asked(place, table):
        compiled = name.lower().startswith("dq_") and any(
            name.lower().endswith(f"_{other.name}") for other in rule_set.tables
        )
        if not IDENTIFIER.fullmatch(name):
            yield pointer, f"`{name}` is not a name for a view", IDENTIFIER_FIX
        elif name.lower() in taken or compiled:
            yield pointer, f"`{name}` is the name of another view", "Use another."
        taken.add(name.lower())


def _asked(place: str, table: RuleTable) -> Iterator[tuple[str, str]]:
    for side, source in table.sources.items():
        if source.pk_view is not None:
            yield f"{place}.sources.{side}.pk_view", source.pk_view
    if table.reconcile is not None and table.reconcile.view is not None:
        yield f"{place}.reconcile.view", table.reconcile.view


def _compiled_sources(rule_set: RuleSet) -> Iterator[str]:
    endings = ("", "_source", "_read")
    for table in rule_set.tables:
        for source in table.sources.values():
            yield from (f"{source.table}{ending}".lower() for ending in endings)


def contract_faults(rule_set: RuleSet, root: Path) -> Found:
    """Contracts are named from the project's root; one that is not there or not sound is no contract."""
    for at, table in enumerate(rule_set.tables):
        name = table.reconcile.contract if table.reconcile else None
        if name is not None:
            yield from _contract(f"tables[{at}].reconcile.contract", name, root)


def _contract(pointer: str, name: str, root: Path) -> Found:
    if not is_file(root / name):
        known = [path.relative_to(root).as_posix() for path in contract_files(root)]
        yield pointer, f"there is no contract `{name}`", suggestion(name, known, "contracts")
        return
    try:
        contract = load_contract(root / name).value
    except DeclarationError as error:
        first = error.faults[0]
        what = f"the contract `{name}` has faults: {first.what}"
        yield pointer, what, f"Run `headgate hash check {name}`."
        return
    if contract.algorithm != RECONCILED:
        what = f"the contract `{name}` hashes by {contract.algorithm}, so no hash would be valid"
        yield pointer, what, f"Reconciliation compares 64 digits: say `algorithm: {RECONCILED}`."
