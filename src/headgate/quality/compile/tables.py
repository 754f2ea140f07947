"""Names of all views and tables of a rule table, and the DDL of its tables in the lake.

The columns of the tables do not depend on the rules, so a new revision never alters a table.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import starmap

from headgate.conditions.literals import spark_identifier
from headgate.core.sql.fragments import (
    CATALOG,
    TABLE_PROPERTIES,
    dead_letter_table,
    job_name,
    properties,
    table_name,
)
from headgate.quality.spec.rule_set import RuleTable

FILE, ENGINE_FILE = "dq_generated.sql", "engine.sql"
NAMESPACE = "dq"
QUALITY, RECONCILE = "quality", "reconcile"
# Where permanent views stand: what any client of the driver sees.
VIEWS = "spark_catalog.default"


@dataclass(frozen=True)
class Names:
    """Views and tables of the rule table `table`, and the kind of its job."""

    table: str
    kind: str = QUALITY

    @property
    def job(self) -> str:
        return job_name(self.kind, self.table)

    @property
    def keyed(self) -> str:
        return self._view("keyed")

    @property
    def known_keys(self) -> str:
        return self._view("known_keys")

    @property
    def rows(self) -> str:
        return self._view("rows")

    @property
    def judged(self) -> str:
        return self._view("judged")

    @property
    def results(self) -> str:
        return self._view("results")

    @property
    def counts(self) -> str:
        return self._view("counts")

    @property
    def metrics(self) -> str:
        return self._view("metrics")

    @property
    def committed(self) -> str:
        return self._view("committed")

    @property
    def partials(self) -> str:
        return self._view("partials")

    @property
    def aggregate_partials(self) -> str:
        return self._view("aggregate_partials")

    @property
    def aggregates(self) -> str:
        return self._view("aggregates")

    @property
    def messages(self) -> str:
        return self._view("messages")

    @property
    def timed(self) -> str:
        """The messages with the time that decides in which window their state is kept."""
        return self._view("timed")

    @property
    def message_states(self) -> str:
        return self._view("message_states")

    @property
    def window_states(self) -> str:
        """The states of the streaming query, which the engine keeps in its table."""
        return self._view("window_states")

    @property
    def states(self) -> str:
        return self._view("states")

    @property
    def facts(self) -> str:
        return self._view("facts")

    @property
    def decided(self) -> str:
        return self._view("decided")

    @property
    def verdicts(self) -> str:
        return self._view("verdicts")

    @property
    def changes(self) -> str:
        """The results of a batch that change a verdict; the engine binds this view."""
        return self._view("changes")

    @property
    def audit(self) -> str:
        return self._view("audit")

    @property
    def status(self) -> str:
        return self._view("status")

    @property
    def states_table(self) -> str:
        return table_name(f"{NAMESPACE}.states_{self.table}")

    @property
    def results_table(self) -> str:
        return table_name(f"{NAMESPACE}.results_{self.table}")

    @property
    def partials_table(self) -> str:
        return table_name(f"{NAMESPACE}.partials_{self.table}")

    @property
    def keys_table(self) -> str:
        return table_name(f"{NAMESPACE}.keys_{self.table}")

    def _view(self, kind: str) -> str:
        return f"dq_{kind}_{self.table}"


def names_of(table: RuleTable) -> Names:
    """With the kind of job that judges the table."""
    return Names(table.name, RECONCILE if table.is_pair else QUALITY)


@dataclass(frozen=True)
class SourceNames:
    """Views of one source."""

    table: str

    @property
    def bound(self) -> str:
        """The records themselves: the engine puts those of a batch under this name."""
        return self._view("_source")

    @property
    def read(self) -> str:
        return self._view("_read")

    @property
    def rows(self) -> str:
        return self._view("")

    def _view(self, ending: str) -> str:
        return spark_identifier(f"{self.table}{ending}")


NAMESPACE_STATEMENT = f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE}"

RESULTS = {
    "pk": "STRING",
    "action": "STRING",
    "dq_status": "STRING",
    "dq_reason": "STRING",
    "dq_severity": "STRING",
    "dq_rules": "ARRAY<STRING>",
    "dq_outcome": "STRING",
    "hash_onprem": "STRING",
    "hash_cloud": "STRING",
    "event_time": "TIMESTAMP",
    "window_start": "TIMESTAMP",
    "row": "STRING",
    "revision": "STRING",
    "processing_time": "TIMESTAMP",
    "kafka_topic": "STRING",
    "kafka_partition": "INT",
    "kafka_offset": "BIGINT",
    "kafka_timestamp": "TIMESTAMP",
}
PARTIALS = {
    "window_start": "TIMESTAMP",
    "env": "STRING",
    "dc": "STRING",
    "table_name": "STRING",
    "topic_name": "STRING",
    "kind": "STRING",
    "name": "STRING",
    "metric": "STRING",
    "severity": "STRING",
    "grp": "STRING",
    "n": "BIGINT",
    "matched": "BIGINT",
    "total": "DOUBLE",
    "nulls": "BIGINT",
    "sketch": "BINARY",
    "newest": "TIMESTAMP",
    "late": "BOOLEAN",
    "revision": "STRING",
    "range": "STRING",
    "batch_time": "TIMESTAMP",
}
KEYS = {
    "rule": "STRING",
    "key": "STRING",
    "event_time": "TIMESTAMP",
    "kafka_partition": "INT",
    "kafka_offset": "BIGINT",
    "batch_time": "TIMESTAMP",
}


def table_statements(names: Names, *, has_keys: bool = False) -> list[str]:
    """The statements that make the tables of a quality job; their columns do not depend on the rules."""
    tables = {names.results_table: RESULTS, names.partials_table: PARTIALS}
    if has_keys:
        tables[names.keys_table] = KEYS
    return [NAMESPACE_STATEMENT, *starmap(table_statement, tables.items()), *dead_letter_tables()]


def table_statement(
    name: str, columns: dict[str, str], values: Mapping[str, str] = TABLE_PROPERTIES
) -> str:
    """The statement that makes one table of ours."""
    listed = ",\n".join(f"  {column} {kind}" for column, kind in columns.items())
    given = textwrap.indent(properties(values), "  ")
    return (
        f"CREATE TABLE IF NOT EXISTS {name} (\n{listed}\n)\nUSING iceberg\n"
        f"TBLPROPERTIES (\n{given}\n)"
    )


def dead_letter_tables() -> list[str]:
    """The statements that make the dead-letter table and its namespace, each for itself."""
    return [statement.rstrip(";") for statement in dead_letter_table().split(";\n\n")]
