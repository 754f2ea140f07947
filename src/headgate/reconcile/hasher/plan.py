"""The plan of one hasher: where it reads, where it writes, by which contract and how fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import orjson

from headgate.declarations.types import duration
from headgate.errors import UsageError
from headgate.hashing.types import HashType
from headgate.quality.record_parser import read_path
from headgate.quality.spec.reconcile_section import Reconcile, WholeRows
from headgate.quality.spec.rule_set import RuleTable
from headgate.reconcile.hasher.lookups import Limits
from headgate.reconcile.hasher.readings import CloudForm
from headgate.reconcile.hasher.requests import (
    Closed,
    EventForm,
    Opened,
    behind_the_frame,
    closer,
    event_form,
    plainly,
    reread_topic,
)

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.hashing.contract import HashContract

Mode = Literal["lookup", "cdc"]
DEAD_LETTERS = "dlq-cassandra-cloud"
CDC_PREFIX = "cassandra"


@dataclass(frozen=True)
class Given:
    """What the command line says; None and empty mean what is declared."""

    mode: Mode = "lookup"
    once: bool = False
    group: str | None = None
    topic: str | None = None
    tombstones: bool = False
    in_flight: int = 100
    timeout: float = 5.0
    retries: int = 3
    reread_after: float | None = None
    metrics_port: int = 0


@dataclass(frozen=True)
class HasherPlan:
    """Everything that a hasher needs to know before it starts."""

    table: str
    given: Given
    bootstrap: str
    topic: str
    cloud_topic: str
    letters_topic: str
    cassandra_table: str
    key: tuple[str, ...]
    version: str | None
    fields: tuple[str, ...]
    row_hash: Callable[[Mapping[str, object]], str]
    events: EventForm
    cloud: CloudForm
    reread_after: float
    columns_file: Path
    opened: Opened = plainly
    closed: Closed = orjson.dumps
    kinds: Mapping[str, HashType] = field(default_factory=dict[str, HashType])

    @property
    def job(self) -> str:
        return f"hasher-{self.table}"

    @property
    def group(self) -> str:
        suffix = "" if self.given.mode == "lookup" else f"-{self.given.mode}"
        return self.given.group or f"headgate-{self.job}{suffix}"

    @property
    def topics(self) -> tuple[str, ...]:
        """What is read: events, and requests to read a key again."""
        lookup = self.given.mode == "lookup"
        return (self.topic, reread_topic(self.topic)) if lookup else (self.topic,)

    @property
    def tombstones(self) -> bool:
        """Change data says of a delete only that: there is no event to compare with."""
        return self.given.tombstones or self.given.mode == "cdc"

    @property
    def limits(self) -> Limits:
        return Limits(self.given.in_flight, self.given.retries)


def plan_of(settings: Settings, table: RuleTable, bootstrap: str, given: Given) -> HasherPlan:
    """The plan for a table of a rule set; refused when it says nothing of Cassandra or a contract."""
    reconcile, rows = _declared(table)
    contract = _contract(settings, reconcile)
    onprem, cloud = table.sources["onprem"], table.sources["cloud"]
    cassandra = str(rows.cassandra)
    topic = given.topic or str(onprem.topic)
    if given.mode == "cdc" and not given.topic:
        topic = f"{CDC_PREFIX}.{cassandra}"
    form = _cloud_form(table, reconcile, contract)
    url = settings.schema_registry_url
    return HasherPlan(
        table=table.name,
        given=given,
        bootstrap=bootstrap,
        topic=topic,
        cloud_topic=str(cloud.topic),
        letters_topic=DEAD_LETTERS,
        cassandra_table=cassandra,
        key=tuple(part.strip() for part in rows.key.split(",")),
        version=rows.version,
        fields=tuple(one.name for one in contract.fields),
        row_hash=_hashed_by(contract),
        events=event_form(table, reconcile, read_path(onprem.pk_path) if onprem.pk_path else ()),
        cloud=form,
        reread_after=given.reread_after or _waits(settings, reconcile).total_seconds() / 2,
        columns_file=settings.home / "hasher" / f"{table.name}.columns.json",
        opened=behind_the_frame if onprem.framed else plainly,
        closed=closer(url, str(cloud.topic), form) if cloud.framed else orjson.dumps,
        kinds={one.name: one.kind for one in contract.fields},
    )


def _cloud_form(table: RuleTable, reconcile: Reconcile, contract: HashContract) -> CloudForm:
    return CloudForm(
        pk=table.pk,
        hash=table.hash.cloud_field if table.hash else "hash_cloud",
        hash_version=reconcile.hash_version,
        event_time=table.sources["cloud"].event_time or "cloud_ts",
        number=contract.hash_version,
    )


def _declared(table: RuleTable) -> tuple[Reconcile, WholeRows]:
    reconcile = table.reconcile
    rows = reconcile.rows.cloud if reconcile else None
    if reconcile is None or rows is None or not rows.cassandra or not table.is_pair:
        raise UsageError(
            f"the table `{table.name}` says nothing of rows in Cassandra",
            why="a hasher reads the rows of `reconcile: {rows: {cloud: {cassandra: …}}}`",
            fix="declare it, as rules/topic1.yml does for `business`",
        )
    return reconcile, rows


def _contract(settings: Settings, reconcile: Reconcile) -> HashContract:
    from headgate.hashing.contract import load_contract

    if reconcile.contract is None:
        raise UsageError(
            "the table names no hash contract",
            why="both sides must hash the same columns in the same way",
            fix="write `reconcile: {contract: contracts/business_table.hash.yml}`",
        )
    return load_contract(settings.root / reconcile.contract).value


def _hashed_by(contract: HashContract) -> Callable[[Mapping[str, object]], str]:
    from headgate.hashing.python import row_hash

    return lambda row: row_hash(contract, row)


def _waits(settings: Settings, reconcile: Reconcile) -> timedelta:
    """How long after the last reading a key is settled."""
    window, grace = settings.reconcile_window, settings.reconcile_grace
    return (duration(window) if window else reconcile.window) + (
        duration(grace) if grace else reconcile.grace
    )
