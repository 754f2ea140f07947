"""The `reconcile:` section of a rule table: times, hash contract, whole rows, audit, repairs and objective."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StrictBool
from pydantic.dataclasses import dataclass

from headgate.declarations.document import Text
from headgate.quality.spec.values import Duration, written

_STRICT = ConfigDict(extra="forbid", str_strip_whitespace=True)
WINDOW, GRACE, HORIZON = timedelta(minutes=10), timedelta(minutes=5), timedelta(hours=1)
OVER = timedelta(days=1)
AUDIT_TOPIC = "dq_reconciliation_audit"
Repairable = Literal["MISSING_CLOUD", "MISMATCH", "LATE_MISMATCH", "ZOMBIE"]


@dataclass(frozen=True, config=_STRICT)
class WholeRows:
    """Where whole rows of one side can be read by key: exactly one of these."""

    iceberg: Annotated[Text | None, Field(description="A table of the lake, schema.table.")] = None
    parquet: Annotated[Text | None, Field(description="A file, from the project's root.")] = None
    cassandra: Annotated[Text | None, Field(description="keyspace.table")] = None
    key: Annotated[Text, Field(description="The column that is the key.")] = "pk"
    version: Annotated[
        Text | None, Field(description="The column with the row's version; else WRITETIME.")
    ] = None


@dataclass(frozen=True, config=_STRICT)
class Rows:
    """Where both sides' rows can be read, to say why they differ and to send them again."""

    onprem: WholeRows | None = None
    cloud: WholeRows | None = None


@dataclass(frozen=True, config=_STRICT)
class Audit:
    """Where each change of a verdict is told, beside the table of the lake."""

    topic: Annotated[Text | None, Field(description="A topic, keyed by the key.")] = AUDIT_TOPIC
    cassandra: Annotated[Text | None, Field(description="keyspace.table, made if absent.")] = None


@dataclass(frozen=True, config=_STRICT)
class Repair:
    """What is sent again by itself, and how fast; a person may always ask for more."""

    to: Annotated[
        Literal["cassandra", "topic"],
        Field(description="Write the row to the cloud, or ask the source by a topic."),
    ] = "cassandra"
    topic: Annotated[Text | None, Field(description="Default: <onprem topic>.repair.")] = None
    automatic: Annotated[
        tuple[Repairable, ...], Field(description="Statuses that are repaired without a person.")
    ] = ()
    per_second: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 50


@dataclass(frozen=True, config=_STRICT)
class Slo:
    """What share of the keys settled lately must be reconciled within window plus grace."""

    within_grace: Annotated[float, Field(gt=0, le=1)] = 0.999
    over: Annotated[
        Duration,
        Field(
            description="Keys settled within this time count; all, if none was.",
            json_schema_extra=written(OVER),
        ),
    ] = OVER


@dataclass(frozen=True, config=_STRICT)
class Reconcile:
    """How the keys of two sources are reconciled, as a batch or as a stream."""

    window: Annotated[
        Duration,
        Field(description="Sides further apart are late.", json_schema_extra=written(WINDOW)),
    ] = WINDOW
    grace: Annotated[
        Duration,
        Field(
            description="How much longer the other side is waited for.",
            json_schema_extra=written(GRACE),
        ),
    ] = GRACE
    horizon: Annotated[
        Duration,
        Field(description="How long state is at hand.", json_schema_extra=written(HORIZON)),
    ] = HORIZON
    contract: Annotated[Text | None, Field(description="The hash contract's file.")] = None
    hash_version: Annotated[
        Text | None, Field(description="The column with the hash's version, on both sides.")
    ] = None
    action: Annotated[Text, Field(description="The on-prem column with the action.")] = "action"
    view: Annotated[
        Text | None, Field(description="Another name of the view of pairs, as dq_hash_check.")
    ] = None
    status_topic: Annotated[
        Text | None, Field(description="A topic for {dq_status, cnt}, as dq-metrics.")
    ] = None
    rows: Rows = Rows()
    audit: Audit = Audit()
    repair: Repair = Repair()
    slo: Slo = Slo()
    keep_matches: Annotated[
        StrictBool, Field(description="Whether matches are told on the audit topic too.")
    ] = False
