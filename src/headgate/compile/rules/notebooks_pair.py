"""Notebooks of a reconciled pair: one for each side, which asks that side alone, and one for both."""

from __future__ import annotations

from headgate.compile.fragments import CATALOG, DEAD_LETTERS, comment, job_name
from headgate.compile.rules.model import JudgedTable
from headgate.compile.rules.names import Names
from headgate.compile.rules.notebooks import Note, Query
from headgate.errors import SettingsError
from headgate.expr.literals import spark_literal
from headgate.hashing.spark import row_hash_sql
from headgate.spec.hash_contract import HashContract
from headgate.spec.reconcile import Reconcile
from headgate.spec.ruleset import Side

VALID_HASH = "[0-9a-f]{64}"


def pair_notes(judged: JudgedTable, contract: HashContract | None) -> tuple[Note, ...]:
    """On-prem, cloud, and the two against each other."""
    reconcile = judged.table.reconcile
    if reconcile is None:
        raise SettingsError(
            f"{judged.table.name} is not reconciled as a stream",
            why="its rule set has no `reconcile`",
            fix=f"headgate rules notebook {judged.table.name}",
        )
    sides = tuple(_side(judged, side, contract) for side in judged.table.sources)
    return (*sides, _both(judged, reconcile))


def _side(judged: JudgedTable, side: Side, contract: HashContract | None) -> Note:
    """Every statement is pinned to one data centre: it reads nothing of the other."""
    table, source = judged.table, judged.table.sources[side]
    name = f"{table.name}_{side}"
    about = (
        f"# {table.name}, data centre {source.dc}\n\nWhat `{source.topic}` says, and nothing of the "
        f"other side. Key `{table.pk}`."
    )
    found = (
        *_read(judged, side),
        *_rows(judged, side, contract),
        *_judged(judged, side),
        _letters(judged, side),
    )
    pinned = tuple(
        Query(q.title, q.words, f"{comment(f'data centre: {source.dc}')}\n{q.sql}") for q in found
    )
    return Note(name, f"Reconciliation of {table.name}: {source.dc}", about, pinned)


def _states(judged: JudgedTable) -> str:
    return Names(judged.table.name).states_table


def _read(judged: JudgedTable, side: Side) -> tuple[Query, ...]:
    return (
        Query(
            "What was read last",
            "The newest version of each key, as the topic told it.",
            f"SELECT pk, {side}.version, {side}.action, {side}.hash, {side}.hash_version,\n"
            f"  {side}.read_at, {side}.partition, {side}.offset\nFROM {_states(judged)}\n"
            f"WHERE {side} IS NOT NULL\nORDER BY {side}.read_at DESC, pk\nLIMIT 20",
        ),
        Query(
            "Each reading by itself",
            "Without the other side: is there a hash, and is it one?",
            f"SELECT CASE\n    WHEN {side}.action = 'DELETE' THEN 'DELETED'\n"
            f"    WHEN {side}.hash IS NULL THEN 'NO_HASH'\n"
            f"    WHEN NOT {side}.hash RLIKE '^{VALID_HASH}$' THEN 'INVALID_HASH'\n"
            f"    ELSE 'PASS'\n  END AS verdict,\n  count(*) AS readings\nFROM {_states(judged)}\n"
            f"WHERE {side} IS NOT NULL\nGROUP BY verdict\nORDER BY readings DESC",
        ),
    )


def _rows(judged: JudgedTable, side: Side, contract: HashContract | None) -> tuple[Query, ...]:
    """Where whole rows are in the lake, they are hashed once more."""
    rows = getattr(judged.table.reconcile.rows, side) if judged.table.reconcile else None
    if contract is None or rows is None or rows.iceberg is None:
        return ()
    return (
        Query(
            "Rows, hashed here",
            f"By the contract `{contract.name}`, in Spark's own functions.",
            f"SELECT {rows.key}, {', '.join(field.name for field in contract.fields)},\n"
            f"  {row_hash_sql(contract)} AS hash\nFROM {CATALOG}.{rows.iceberg}\nLIMIT 20",
        ),
    )


def _judged(judged: JudgedTable, side: Side) -> tuple[Query, ...]:
    valid = f"{side}.hash RLIKE '^{VALID_HASH}$' OR {side}.action = 'DELETE'"
    return tuple(
        Query(
            f"{word.capitalize()} readings by minute",
            words,
            f"SELECT date_trunc('MINUTE', {side}.read_at) AS metric_ts, count(*) AS {word}_count\n"
            f"FROM {_states(judged)}\nWHERE {side} IS NOT NULL AND {condition}\n"
            "GROUP BY metric_ts\nORDER BY metric_ts DESC\nLIMIT 60",
        )
        for word, words, condition in (
            ("valid", "Those with a hash that is one, and deletes.", f"coalesce({valid}, FALSE)"),
            ("invalid", "All others.", f"NOT coalesce({valid}, FALSE)"),
        )
    )


def _letters(judged: JudgedTable, side: Side) -> Query:
    topic = judged.table.sources[side].topic or ""
    job = job_name("reconcile", judged.table.name)
    return Query(
        "Dead letters",
        "Records of this topic that could take no part, with the reason.",
        f"SELECT reason_code, count(*) AS records, max(kafka_timestamp) AS newest\n"
        f"FROM {DEAD_LETTERS}\nWHERE job = {spark_literal(job)} AND kafka_topic = "
        f"{spark_literal(topic)}\nGROUP BY reason_code\nORDER BY records DESC",
    )


def _both(judged: JudgedTable, reconcile: Reconcile) -> Note:
    table = judged.table
    topics = " and ".join(f"`{source.topic}`" for source in table.sources.values())
    about = (
        f"# Reconciliation of {table.name}\n\n{topics}, key by key. Every key has one status; "
        "`docs/reconciliation.md` says what each means."
    )
    names = Names(table.name)
    found = [
        Query(
            "How the keys stand",
            "Valid, invalid, missing, pending.",
            f"SELECT rollup, dq_status, cnt\nFROM dq_status_{table.name}\nORDER BY cnt DESC",
        ),
        Query(
            "What is wrong, and why",
            "Settled keys that are not valid.",
            "SELECT pk, dq_status, dq_reason, onprem_version, cloud_version, stale, conflict\n"
            f"FROM dq_results_{table.name}\nWHERE rollup IN ('invalid', 'missing')\n"
            "ORDER BY onprem_version, pk\nLIMIT 50",
        ),
        Query(
            "What waits",
            "And what it would be if nothing came until the deadline.",
            "SELECT pk, dq_status, provisional, deadline\n"
            f"FROM dq_results_{table.name}\nWHERE NOT settled\nORDER BY deadline, pk\nLIMIT 50",
        ),
        Query(
            "Changes by minute",
            "Every change of a verdict is one row of the audit.",
            "SELECT date_trunc('MINUTE', processing_time) AS at, dq_status, count(*) AS changes\n"
            f"FROM dq_audit_{table.name}\nGROUP BY at, dq_status\nORDER BY at DESC, changes DESC\n"
            "LIMIT 100",
        ),
        Query(
            "The stories that are longest",
            "Keys whose verdict changed most often.",
            "SELECT pk, count(*) AS changes,\n"
            "  array_sort(collect_list(struct(processing_time, dq_status))).dq_status AS story\n"
            f"FROM dq_audit_{table.name}\nGROUP BY pk\nORDER BY changes DESC, pk\nLIMIT 20",
        ),
        Query(
            "Metrics by window",
            "As they go to the sinks.",
            f"SELECT *\nFROM dq_metrics_{table.name}\nORDER BY window_start DESC\nLIMIT 60",
        ),
        Query(
            "State",
            "Rows that hold what is known of the keys; the job lets go of old ones.",
            f"SELECT window_start, count(*) AS keys, sum(records) AS records\n"
            f"FROM {names.states_table}\nGROUP BY window_start\nORDER BY window_start DESC\nLIMIT 24",
        ),
    ]
    if reconcile.view:
        found.append(
            Query(
                "Both hashes",
                "The documents' own view.",
                f"SELECT *\nFROM {reconcile.view}\nORDER BY pk\nLIMIT 20",
            )
        )
    return Note(f"{table.name}_reconcile", f"Reconciliation of {table.name}", about, tuple(found))
