"""Reads what the report rests on: changes of verdicts from the lake, records from the ledger, differing rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from headgate.config.settings import Settings
from headgate.core.lake.duckdb_reader import Lake, quoted
from headgate.core.ledger.model import LedgerRow
from headgate.core.ledger.ops_store import OpsStore, utc_now
from headgate.core.sql.fragments import job_name
from headgate.declarations.types import in_words
from headgate.errors import HeadgateError
from headgate.quality.compile.resolve import JudgedTable
from headgate.quality.report.rows import MASK, sensitive_columns
from headgate.quality.spec.reconcile_section import Reconcile
from headgate.reconcile.report.make import Before, Evidence, Step, make_report, moment
from headgate.reconcile.report.model import (
    Header,
    Move,
    Objective,
    Pending,
    PendingLine,
    ReconcileReport,
    RepairLine,
    RepairList,
)
from headgate.reconcile.report.render import read_before
from headgate.reconcile.results import (
    NEWEST,
    flags_sql,
    refuse_unless_reconciled,
    results_table,
    states_table,
)
from headgate.reconcile.row_diff import RowDifference

UNEQUAL = ("MISMATCH", "LATE_MISMATCH")
REPAIRABLE = ("MISSING_CLOUD", "MISMATCH", "LATE_MISMATCH", "ZOMBIE")
MOST_READ, MOST_REPAIRS, MOST_PENDING = 2_000, 100, 25
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LETTERS = "headgate.dead_letters"
_IS_UNEQUAL = f"verdict IN ({', '.join(quoted(status) for status in UNEQUAL)})"
IN_TIME = (
    "processing_time, onprem_version NULLS FIRST, cloud_version NULLS FIRST, settled, dq_status"
)
# Why the sides of these keys differ, as far as both can be read.
Why = Callable[[Sequence[str]], Sequence[RowDifference]]


@dataclass(frozen=True)
class Wanted:
    """Which report: of this table, held against the one before, its differences explained by `why`."""

    table: JudgedTable
    reconcile: Reconcile
    before: Path | None = None
    why: Why | None = None
    repairs: int = MOST_REPAIRS


def reconcile_report(settings: Settings, store: OpsStore, wanted: Wanted) -> ReconcileReport:
    """The report as of now."""
    name = wanted.table.table.name
    job = job_name("reconcile", name)
    with Lake.open(settings) as lake:
        refuse_unless_reconciled(lake, name)
        found = _Changes(lake, name, wanted)
        evidence = _evidence(found, store.ledger(job), job, wanted)
        return make_report(_header(store, job, wanted, found), evidence)


def _evidence(found: _Changes, ledger: Sequence[LedgerRow], job: str, wanted: Wanted) -> Evidence:
    before = read_before(wanted.before) if wanted.before else None
    differing, note = _explained(found, wanted)
    statuses = found.statuses()
    outcomes: dict[str, int] = {}
    for row in ledger:
        for outcome, n in row.outcomes.items():
            outcomes[outcome] = outcomes.get(outcome, 0) + n
    return Evidence(
        statuses={status: n for status, (_, n) in statuses.items()},
        severities={s: severity for s, (severity, _) in statuses.items() if severity},
        rollups=found.rollups(),
        steps=found.steps(),
        flags=found.flags(),
        pending=found.pending(),
        letters=found.letters(job),
        objective=found.objective(wanted.reconcile.slo.within_grace),
        repair=found.repairs(),
        outcomes=outcomes,
        read=sum(row.read for row in ledger),
        differing=differing,
        unequal=found.count_unequal(),
        moves=found.moves(before) if before else (),
        before=before,
        kinds_note=note,
    )


def _explained(
    found: _Changes, wanted: Wanted
) -> tuple[tuple[tuple[str, RowDifference], ...], str]:
    """The differing keys that are read, with their status; or why they could not be read."""
    keys = found.unequal()
    if not keys:
        return (), ""
    if wanted.why is None:
        return (), "The rule set does not say where whole rows of both sides can be read."
    try:
        rows = wanted.why(list(keys))
    except HeadgateError as error:
        return (), f"The rows could not be read: {error.what}."
    return tuple((keys[row.pk], row) for row in rows), ""


def _header(store: OpsStore, job: str, wanted: Wanted, found: _Changes) -> Header:
    run, reconcile = store.latest(job), wanted.reconcile
    batches = store.ledger(job)
    first, last, revision = found.ends()
    return Header(
        table=wanted.table.table.name,
        job=job,
        run=run.number if run else None,
        state=str(run.state).lower() if run else "never run",
        revision=revision,
        sources=tuple(
            f"{source.topic or source.iceberg} ({source.dc})"
            for source in wanted.table.table.sources.values()
        ),
        window=in_words(reconcile.window),
        grace=in_words(reconcile.grace),
        horizon=in_words(reconcile.horizon),
        batches=len(batches),
        first_change=moment(first),
        last_change=moment(last),
        made_at=moment(utc_now()),
        as_of=last.isoformat(),
    )


class _Changes:
    """Questions to the table of changes: one row for each change of a key's verdict."""

    def __init__(self, lake: Lake, table: str, wanted: Wanted) -> None:
        self._lake, self._wanted = lake, wanted
        self._scan = lake.scan_sql(results_table(table))
        self._states = states_table(table)
        self._hidden = wanted.table.table.pk in sensitive_columns(wanted.table.table)
        self._newest = newest_sql(self._scan)

    def _query(self, sql: str) -> list[tuple[object, ...]]:
        return self._lake.query(sql)

    def statuses(self) -> dict[str, tuple[str | None, int]]:
        rows = self._query(
            "SELECT dq_status, any_value(dq_severity), count(*)\n"
            f"FROM {self._newest}\nGROUP BY dq_status"
        )
        return {str(s): (_text(severity), cast("int", n)) for s, severity, n in rows}

    def rollups(self) -> dict[str, dict[str, int]]:
        """The keys of each status by roll-up, as the results have it."""
        found: dict[str, dict[str, int]] = {}
        for status, rollup, n in self._query(
            f"SELECT dq_status, rollup, count(*)\nFROM {self._newest}\nGROUP BY ALL ORDER BY ALL"
        ):
            found.setdefault(str(status), {})[str(rollup)] = cast("int", n)
        return found

    def steps(self) -> tuple[Step, ...]:
        """How the number of keys with each status changed, and when."""
        rows = self._query(steps_sql(self._scan))
        return tuple(Step(_utc(at), str(s), cast("int", n), str(r)) for at, s, r, n in rows)

    def flags(self) -> dict[str, int]:
        """As the view `dq_results_<table>` has them: by all that was read, told again or not."""
        merged = flags_sql(self._lake.scan_sql(self._states), self._wanted.reconcile.window)
        # Of no keys at all, DuckDB counts NULL.
        counts = (f"coalesce(count_if({flag}), 0)" for flag in ("stale", "conflict", "late"))
        ((stale, conflict, late),) = self._query(f"SELECT {', '.join(counts)}\nFROM ({merged})")
        return {
            "an older version came after a newer one": cast("int", stale),
            "one version said two things": cast("int", conflict),
            "the sides came further apart than the window": cast("int", late),
        }

    def ends(self) -> tuple[datetime, datetime, str]:
        ((first, last, revision),) = self._query(
            "SELECT min(processing_time), max(processing_time), arg_max(revision, processing_time)\n"
            f"FROM {self._scan}"
        )
        begin, end = (_utc(at) if at else EPOCH for at in (first, last))
        return begin, end, (_text(revision) or "")[:12]

    def pending(self) -> Pending:
        now = f"TIMESTAMPTZ {quoted(utc_now().isoformat(' '))}"
        rows = self._query(
            "SELECT pk, dq_status, provisional, processing_time, deadline, deadline < "
            f"{now},\n  count(*) OVER (), count_if(deadline < {now}) OVER ()\n"
            f"FROM {self._newest}\nWHERE NOT settled\nORDER BY deadline, pk LIMIT {MOST_PENDING}"
        )
        if not rows:
            return Pending(0, 0)
        lines = tuple(
            PendingLine(
                self._key(pk), str(s), _text(p) or "", _moment(t), _moment(d), overdue=o is True
            )
            for pk, s, p, t, d, o, _, _ in rows
        )
        return Pending(cast("int", rows[0][-2]), cast("int", rows[0][-1]), lines)

    def objective(self, target: float) -> Objective:
        """Settled keys of which both sides were heard, or the delete was confirmed, in time."""
        ((settled, within),) = self._query(
            f"SELECT count(*), coalesce(count_if(within_grace), 0)\nFROM {self._newest}\nWHERE settled"
        )
        return Objective(target, cast("int", settled), cast("int", within))

    def repairs(self) -> RepairList:
        listed = ", ".join(quoted(status) for status in REPAIRABLE)
        counts = self._query(
            f"SELECT verdict, count(*) FROM {self._newest}\n"
            f"WHERE verdict IN ({listed}) GROUP BY verdict ORDER BY verdict"
        )
        rows = self._query(
            "SELECT pk, verdict, onprem_version, cloud_version, processing_time\n"
            f"FROM {self._newest}\nWHERE verdict IN ({listed})\n"
            f"ORDER BY onprem_version, pk LIMIT {self._wanted.repairs}"
        )
        by_status = {str(status): cast("int", n) for status, n in counts}
        lines = tuple(
            RepairLine(self._key(pk), str(s), _moment(v), _moment(c), _moment(t))
            for pk, s, v, c, t in rows
        )
        return RepairList(sum(by_status.values()), by_status, lines)

    def unequal(self) -> dict[str, str]:
        """Some of the keys whose hashes differ, with their verdict."""
        rows = self._query(
            f"SELECT pk, verdict FROM {self._newest}\nWHERE {_IS_UNEQUAL}\n"
            f"ORDER BY hash(pk), pk LIMIT {MOST_READ}"
        )
        return {str(pk): str(verdict) for pk, verdict in rows}

    def count_unequal(self) -> int:
        ((n,),) = self._query(f"SELECT count(*) FROM {self._newest}\nWHERE {_IS_UNEQUAL}")
        return cast("int", n)

    def moves(self, before: Before) -> tuple[Move, ...]:
        """From which status to which, since that report."""
        at = f"TIMESTAMPTZ {quoted(before.as_of)}"
        rows = self._query(
            "SELECT earlier.dq_status AS was, newest.dq_status AS now, count(*) AS n\n"
            f"FROM {self._newest} AS newest\nLEFT JOIN "
            f"{newest_sql(f'(SELECT * FROM {self._scan} WHERE processing_time <= {at})')} AS earlier\n"
            "  ON newest.pk = earlier.pk\n"
            "WHERE was IS DISTINCT FROM now GROUP BY was, now ORDER BY n DESC, was, now"
        )
        return tuple(Move(_text(was), str(now), cast("int", n)) for was, now, n in rows)

    def letters(self, job: str) -> dict[str, tuple[str, int]]:
        if not self._lake.exists(LETTERS):
            return {}
        rows = self._query(letters_sql(self._lake.scan_sql(LETTERS), job))
        return {str(code): (_text(words) or "", cast("int", n)) for code, words, n in rows}

    def _key(self, pk: object) -> str:
        return MASK if self._hidden else str(pk)


def letters_sql(scan: str, job: str) -> str:
    """Dead letters by reason code: how many, and why.

    A reason ends with the record's own values behind a semicolon; those of one do not speak for others.
    """
    words = "CASE WHEN count(DISTINCT reason) = 1 THEN min(reason) ELSE min(split_part(reason, '; ', 1)) END"
    return (
        f"SELECT reason_code, {words}, count(*)\n"
        f"FROM {scan}\nWHERE job = {quoted(job)}\nGROUP BY reason_code"
    )


def newest_sql(scan: str) -> str:
    """Each key with its newest change: by versions first, since what came late tells of the past."""
    return f"(SELECT * FROM (SELECT *, {NEWEST} AS nth FROM {scan}) WHERE nth = 1)"


def told_sql(scan: str) -> str:
    """The changes that were the newest of their key when they came."""
    rank = f"row({_since_ever('onprem_version')}, {_since_ever('cloud_version')})"
    return (
        f"(SELECT * FROM (SELECT *, {rank} AS rank, max({rank}) OVER (PARTITION BY pk"
        f" ORDER BY {IN_TIME} ROWS UNBOUNDED PRECEDING) AS newest FROM {scan})"
        " WHERE rank = newest)"
    )


def steps_sql(scan: str) -> str:
    """By time, status and roll-up, how many keys more or fewer have them."""
    return (
        "WITH changes AS (SELECT dq_status AS status, rollup, processing_time AS moment,\n"
        "  lag(dq_status) OVER told AS before, lag(rollup) OVER told AS rollup_before\n"
        f"  FROM {told_sql(scan)}\n"
        f"  WINDOW told AS (PARTITION BY pk ORDER BY {IN_TIME}))\n"
        "SELECT moment, status, rollup, sum(n)::BIGINT FROM (\n"
        "  SELECT moment, status, rollup, 1 AS n FROM changes\n"
        "  UNION ALL SELECT moment, before, rollup_before, -1 FROM changes WHERE before IS NOT NULL)\n"
        "GROUP BY moment, status, rollup HAVING sum(n) <> 0"
    )


def _since_ever(column: str) -> str:
    return f"coalesce({column}, TIMESTAMPTZ '-infinity')"


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _utc(value: object) -> datetime:
    return cast("datetime", value).astimezone(UTC)


def _moment(value: object) -> str:
    return moment(_utc(value)) if value is not None else ""
