"""P1 to P4: what judging rows by rules costs, how that grows, and how often the source is read.

    python bench/quality.py [BOOTSTRAP] --goal P1 [--rows N] [--repeat N]

P1: rows of 20 columns are read from Parquet and written to Spark's no-op sink, once as they are
(the bare scan-and-write) and once as row results of 100 rules, 1 % of the rows failing; the ratio
of the CPU seconds counts. Beside it stand two forms that a person might write: a CASE that finds
the first rule, and an array of all that hold. P2: the same with 400 rules against 100, and 1,000
rules once. P3: a rule set of 200 rules, from its text to SQL. P4: a batch of the quality job over a
topic; how many of its Spark jobs read the topic when nothing is bad. Of every form the best of the
repeats counts; the forms take turns, so that a busy moment meets all of them.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from rig import Cost, Rig, measured, rig

from headgate.compile.rules.compile import compile_table
from headgate.compile.rules.judge import load_judged
from headgate.compile.rules.model import JudgedTable
from headgate.compile.script import Script, parse_script
from headgate.engine.context import RunContext
from headgate.engine.topics import Topics, TopicSpec
from headgate.expr.spark import to_spark
from headgate.jobs.registry import JOBS
from headgate.jobs.requests import ask_for
from headgate.store.ops import OpsStore

GOALS = ("P1", "P2", "P3", "P4")
SEED = 5
TABLE = "bench"
COUNTRIES = ("DE", "FR", "IT", "ES", "PL", "NL", "BE", "AT")
STRINGS = ("customer_id", "action", "row_hash", "email", "phone", "country", "city")
NUMBERS = ("balance", "credit", "spent", "refund", "score", "age", "visits", "tier")
TYPES = {
    **dict.fromkeys(STRINGS, "STRING"),
    **dict.fromkeys(("balance", "credit", "spent", "refund", "score"), "DOUBLE"),
    **dict.fromkeys(("age", "visits", "tier"), "INT"),
    "account": "BIGINT",
    "active": "BOOLEAN",
    "at": "TIMESTAMP(3)",
    "created": "TIMESTAMP(3)",
    "born": "DATE",
}
# Of 100 rules. Comparisons cost next to nothing; lists, lengths and patterns of texts are dear.
PLAIN = {"required": 38, "range": 34, "compare": 16, "compound": 12}
TEXTS = {
    "required": 30,
    "range": 28,
    "compare": 14,
    "compound": 12,
    "lookup": 8,
    "length": 5,
    "regex": 3,
}
MIXES = {"100 rules on numbers and NULLs": PLAIN, "100 rules, 16 of them on texts": TEXTS}


@dataclass(frozen=True)
class Judge:
    """The compiled rules over the rows, in a session."""

    judged: JudgedTable
    script: Script

    def results(self, session: SparkSession, source: DataFrame) -> str:
        """The query whose rows are the row results."""
        source.createOrReplaceTempView("bench_rows_source")
        for step in ("clock", "revision", "view"):
            for statement in self.script.named(step):
                session.sql(statement)
        return f"SELECT * FROM dq_results_{TABLE}"

    def by_hand(self, form: str) -> str:
        """What a person might write: the first rule by a CASE, or the names of all that hold."""
        told = [
            (rule.name, to_spark(rule.condition)) for rule in self.judged.rules if rule.condition
        ]
        if form == "case":
            first = " ".join(f"WHEN {condition} THEN '{name}'" for name, condition in told)
            return f"SELECT *, CASE {first} ELSE 'VALID' END AS dq_status FROM bench_rows_source"
        names = ", ".join(f"IF({condition}, '{name}', NULL)" for name, condition in told)
        return f"SELECT *, array_compact(array({names})) AS dq_rules FROM bench_rows_source"


def write_rows(session: SparkSession, folder: Path, rows: int) -> DataFrame:
    """Rows with many different values, as events have them; nothing of them is a dictionary's gift."""

    def drawn(at: int, below: int) -> str:
        return f"pmod(xxhash64(id, {at}), {below})"

    amounts = ("balance", "credit", "spent", "refund", "score")
    columns = [
        "concat('c-', lpad(CAST(id AS STRING), 9, '0')) AS customer_id",
        f"IF({drawn(1, 100)} < 5, 'DELETE', 'UPSERT') AS action",
        "sha2(CAST(id AS STRING), 256) AS row_hash",
        f"concat('user', {drawn(2, 1_000_000)}, '@example', {drawn(3, 100)}, '.com') AS email",
        f"concat('+49', {drawn(4, 10_000_000_000)}) AS phone",
        f"element_at(array{COUNTRIES}, CAST({drawn(5, 8)} + 1 AS INT)) AS country",
        f"concat('city ', {drawn(6, 5_000)}) AS city",
        *(f"{drawn(11 + at, 10_000_000)} / 100D AS {name}" for at, name in enumerate(amounts)),
        f"CAST({drawn(7, 90)} + 10 AS INT) AS age",
        f"CAST({drawn(8, 1_000)} AS INT) AS visits",
        f"CAST({drawn(10, 7)} AS INT) AS tier",
        f"{drawn(9, 1_000_000_000)} AS account",
        f"{drawn(20, 2)} = 0 AS active",
        f"timestamp_millis(1700000000000 + {drawn(21, 86_400_000)}) AS at",
        f"timestamp_millis(1690000000000 + {drawn(22, 864_000_000)}) AS created",
        f"date_add(DATE '1950-01-01', CAST({drawn(23, 20_000)} AS INT)) AS born",
    ]
    file = str(folder / "rows.parquet")
    session.range(rows).selectExpr(*columns).coalesce(4).write.parquet(file)
    return session.read.parquet(file)


def rule(kind: str, at: int, draws: random.Random) -> dict[str, Any]:
    """A rule that no row breaks."""
    number, text = draws.choice(NUMBERS), draws.choice(STRINGS)
    match kind:
        case "required":
            return {"type": "required", "fields": [draws.choice(list(TYPES)[1:])]}
        case "range":
            return {"type": "range", "field": number, "min": -1 - at, "max": 10_000_000 + at}
        case "compare":
            return {"when": f"{number} > {draws.choice(NUMBERS)} + {10_000_000 + at}"}
        case "compound":
            return {
                "when": f"action = 'DELETE' AND balance > {10_000_000 + at}"
                f" OR active AND {number} IS NULL AND age > {at % 90}"
            }
        case "lookup":
            return {"type": "lookup_in", "field": "country", "values": [*COUNTRIES, f"X{at}"]}
        case "length":
            return {"when": f"length({text}) > {70 + at}"}
        case _:
            return {
                "type": "regex",
                "field": "email",
                "pattern": f"[a-z0-9]+@[a-z0-9.]{{1,{50 + at % 900}}}",
            }


def rule_set(count: int, mix: Mapping[str, int]) -> dict[str, Any]:
    """So many rules in the mix; the fourth and the last hold on half a per cent of the rows each."""
    draws = random.Random(SEED)
    kinds = draws.sample([kind for kind, n in mix.items() for _ in range(n)], sum(mix.values()))
    rules = [rule(kinds[at % len(kinds)], at, draws) for at in range(count)]
    rules[3], rules[-1] = {"when": "visits < 5"}, {"when": "visits BETWEEN 5 AND 9"}
    source = {"iceberg": "bench.rows", "table": "bench_rows", "columns": TYPES, "event_time": "at"}
    named = [{"name": f"rule_{at}", **found} for at, found in enumerate(rules)]
    table = {"name": TABLE, "pk": "customer_id", "sources": {"onprem": source}, "rules": named}
    return {"version": 2, "tables": [table]}


def written(folder: Path, count: int, mix: Mapping[str, int] = TEXTS) -> Path:
    file = folder / f"rules_{count}_{len(mix)}.yml"
    file.write_bytes(orjson.dumps(rule_set(count, mix), option=orjson.OPT_INDENT_2))
    return file


def compiled(file: Path) -> Judge:
    judged = load_judged(file, {}).tables[0]
    return Judge(judged, parse_script(file.name, compile_table(judged, file.name).text))


@dataclass
class Forms:
    """Queries by name, measured in turns into the no-op sink."""

    session: SparkSession
    queries: dict[str, Callable[[], str]]

    def best(self, repeat: int) -> dict[str, Cost]:
        for query in self.queries.values():
            self.write(query())  # compiles it, and warms the JVM up
        runs = [
            {
                name: measured(lambda q=query: self.write(q()))
                for name, query in self.queries.items()
            }
            for _ in range(repeat)
        ]
        return {name: min((run[name] for run in runs), key=_cpu) for name in self.queries}

    def write(self, query: str) -> None:
        self.session.sql(query).write.format("noop").mode("overwrite").save()


def _cpu(cost: Cost) -> float:
    return cost.cpu_seconds


def cost(bench: Rig, folder: Path, rows: int, repeat: int) -> dict[str, Any]:
    """P1: 100 rules against the bare scan, with what a person might write beside them."""
    source = write_rows(bench.session, folder, rows)
    source.createOrReplaceTempView("bench_rows_source")
    found = {
        name: _against_bare(bench.session, source, compiled(written(folder, 100, mix)), repeat)
        for name, mix in MIXES.items()
    }
    lines = [
        {"what": name, "figure": told["ratios"]["ours"], "unit": "× bare", "limit": 1.5}
        for name, told in found.items()
    ]
    return {"lines": lines, **found, "mixes": MIXES}


def _against_bare(
    session: SparkSession, source: DataFrame, judge: Judge, repeat: int
) -> dict[str, Any]:
    queries = {
        "bare": lambda: "SELECT * FROM bench_rows_source",
        "ours": lambda: judge.results(session, source),
        "by hand, first rule": lambda: judge.by_hand("case"),
        "by hand, all rules": lambda: judge.by_hand("array"),
    }
    found = Forms(session, queries).best(repeat)
    bare = found["bare"].cpu_seconds
    failing = session.sql(judge.results(session, source)).where("dq_rules IS NOT NULL").count()
    return {
        "ratios": {name: round(taken.cpu_seconds / bare, 2) for name, taken in found.items()},
        "cpu_seconds": {name: taken.cpu_seconds for name, taken in found.items()},
        "failing_share": round(failing / source.count(), 4),
    }


def growth(bench: Rig, folder: Path, rows: int, repeat: int) -> dict[str, Any]:
    """P2: 400 rules against 100, and 1,000 once."""
    session, source = bench.session, write_rows(bench.session, folder, rows)
    judges = {count: compiled(written(folder, count)) for count in (100, 400, 1000)}
    queries = {
        f"{count} rules": lambda count=count: judges[count].results(session, source)
        for count in (100, 400)
    }
    forms = Forms(session, queries)
    found = forms.best(repeat)
    thousand = measured(lambda: forms.write(judges[1000].results(session, source)))
    grown = round(found["400 rules"].cpu_seconds / found["100 rules"].cpu_seconds, 2)
    line = {"what": "400 rules, CPU of 100 rules", "figure": grown, "unit": "×", "limit": 3}
    return {
        "lines": [line],
        "cpu_seconds": {name: taken.cpu_seconds for name, taken in found.items()},
        "1,000 rules, first run": vars(thousand),
    }


def compiling(folder: Path, repeat: int) -> dict[str, Any]:
    """P3: text to SQL, everything loaded already."""
    file = written(folder, 200)
    compiled(file)
    whole, alone = [], []
    for _ in range(repeat + 2):
        begun = time.perf_counter()
        judged = load_judged(file, {}).tables[0]
        between = time.perf_counter()
        compile_table(judged, file.name)
        whole.append(1000 * (time.perf_counter() - begun))
        alone.append(1000 * (time.perf_counter() - between))
    line = {"what": "200 rules from YAML to SQL", "figure": round(min(whole), 1), "unit": "ms"}
    return {"lines": [{**line, "limit": 300}], "judged_to_sql_ms": round(min(alone), 1)}


def reading(bench: Rig, rows: int) -> dict[str, Any]:
    """P4: one batch of the quality job over a topic in which nothing is bad."""
    topic = "bench-quality"
    Topics(bench.bootstrap).create([TopicSpec(topic, 2, 1), TopicSpec(f"{topic}.dlq", 1, 1)])
    fill(bench.bootstrap, topic, rows)
    before = len(plans(bench.session))
    ledger = run_quality(bench, topic)
    found = plans(bench.session)[before:]
    jobs = sum(n for plan, n in found if reads_topic(plan))
    if jobs == 0:
        raise SystemExit("no plan was seen to read the topic: this would measure nothing")
    line = {
        "what": "Spark jobs of a batch that read the topic",
        "figure": jobs,
        "unit": "",
        "limit": 1,
    }
    every = sum(n for _, n in found)
    return {"lines": [line], "jobs_in_all": every, "rows": ledger}


def fill(bootstrap: str, topic: str, rows: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for at in range(rows):
        value = {"id": f"k{at}", "amount": at % 100, "at": f"2024-01-01T10:00:{at % 60:02d}Z"}
        producer.produce(topic, orjson.dumps(value), str(at).encode())
        producer.poll(0)
    producer.flush()


def run_quality(bench: Rig, topic: str) -> int:
    """The job as the engine runs it; how many rows its ledger accepts."""
    folder = bench.folder / "project"
    (folder / "rules").mkdir(parents=True)
    columns = {"id": "STRING", "amount": "DOUBLE", "at": "TIMESTAMP(3)"}
    source = {"topic": topic, "table": "events", "columns": columns, "event_time": "at"}
    rules = [{"name": f"rule_{n}", "when": f"amount < {-n - 1}"} for n in range(10)]
    table = {"name": "reads", "pk": "id", "sources": {"onprem": source}, "rules": rules}
    plain = {"version": 2, "tables": [{**table, "on_fail": "dead_letter"}]}
    (folder / "rules" / "reads.yml").write_bytes(orjson.dumps(plain))
    settings = bench.settings.model_copy(update={"root": folder, "home": bench.folder / "home"})
    with OpsStore.open(f"sqlite:///{bench.folder}/ops.db") as store:
        asked = ask_for(settings, store, "quality-reads", "batch", {})
        run = store.claim(asked.job, asked.number, "bench")
        JOBS[run.kind](RunContext(run, settings, bench.session, store, lambda: None))
        return sum(row.outcomes.get("accepted", 0) for row in store.ledger(run.job))


def plans(session: SparkSession) -> list[tuple[str, int]]:
    """The plan of each query so far, and how many Spark jobs it took."""
    store: Any = session._jsparkSession.sharedState().statusStore()  # pyright: ignore
    found: Any = store.executionsList()
    each = (found.apply(at) for at in range(found.size()))
    return [(str(one.physicalPlanDescription()), int(one.jobs().size())) for one in each]


def reads_topic(plan: str) -> bool:
    """A batch of a stream is a scan of the records that it was given."""
    return "Scan ExistingRDD" in plan or "kafka" in plan.lower().partition("batchscan")[2][:40]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bootstrap", nargs="?", default="localhost:9092")
    parser.add_argument("--goal", choices=GOALS, required=True)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        found = goal(chosen.goal, Path(name), chosen.bootstrap, chosen.rows, chosen.repeat)
    report = {"goal": chosen.goal, **found}
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")


def goal(goal: str, folder: Path, bootstrap: str, rows: int, repeat: int) -> dict[str, Any]:
    if goal == "P3":
        return compiling(folder, repeat)
    with rig(bootstrap) as bench:
        match goal:
            case "P1":
                return cost(bench, folder, rows, repeat)
            case "P2":
                return growth(bench, folder, rows, repeat)
            case _:
                return reading(bench, min(rows, 20_000))


if __name__ == "__main__":
    main()
