"""P1 to P4: what checking rows by rules costs, how that grows, and how often the source is read."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from bench.goals import Figure, Measurement
from bench.session import BenchSession, open_session
from bench.timing import best_cpu, measure_cost, measure_in_turns, report_progress
from headgate.conditions.spark_sql import to_spark
from headgate.core.engine.job_kind import JOBS
from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.sql.script import Script, parse_rule_script
from headgate.quality.compile.file import compile_table
from headgate.quality.compile.resolve import JudgedTable, load_judged

SEED = 5
TABLE = "bench"
SOURCE, RESULTS = "bench_rows_source", f"dq_results_{TABLE}"
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
# Of 100 rules. Comparisons cost next to nothing; lists, lengths and patterns of texts cost most.
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
# The rules, and microseconds of CPU a row to stay below.
MIXES = {
    "100 rules on numbers and NULLs": (PLAIN, 0.5),
    "100 rules, 16 of them on texts": (TEXTS, 1.0),
}


def measure_rules(rows: int = 1_000_000, repeat: int = 5) -> Measurement:
    """P1: rows from Parquet to a no-op sink, as they are and as row results of 100 rules.

    One row in a hundred fails. Beside it stands what one might write by hand: a CASE that finds the
    first failing rule only.
    """
    figures: list[Figure] = []
    details: dict[str, object] = {"rows": rows}
    with open_session() as bench:
        write_rows(bench.spark, bench.folder, rows).createOrReplaceTempView(SOURCE)
        for name, (mix, target) in MIXES.items():
            report_progress(name)
            rules = compile_rules(write_rule_set(bench.folder, 100, mix))
            forms = {
                "bare": lambda: write_noop(bench.spark, f"SELECT * FROM {SOURCE}"),
                "ours": lambda rules=rules: rules.write_results(bench.spark),
                "CASE": lambda rules=rules: write_noop(bench.spark, rules.render_case()),
            }
            cpu = best_cpu(measure_in_turns(forms, repeat))
            figures += [
                Figure(
                    what=f"{name}, CPU a row above the bare scan",
                    value=round((cpu["ours"] - cpu["bare"]) / rows * 1e6, 3),
                    unit="µs",
                    target=target,
                    beside=f"{cpu['ours']:.2f} to {cpu['bare']:.2f} CPU s",
                ),
                Figure.of_ratio(f"{name}, CPU of a CASE by hand", cpu["ours"], cpu["CASE"], 1.0),
            ]
            failing = bench.spark.table(RESULTS).where("dq_rules IS NOT NULL").count()
            details[name] = {"cpu_seconds": cpu, "failing_share": round(failing / rows, 4)}
    return Measurement(figures=tuple(figures), details=details)


def measure_growth(
    rows: int = 1_000_000, repeat: int = 3, few: int = 100, many: int = 400, most: int = 1_000
) -> Measurement:
    """P2: 400 rules against 100; 1,000 rules once, which must not overflow a stack."""
    with open_session() as bench:
        write_rows(bench.spark, bench.folder, rows).createOrReplaceTempView(SOURCE)
        rules = {n: compile_rules(write_rule_set(bench.folder, n)) for n in (few, many, most)}
        forms = {
            str(count): lambda count=count: rules[count].write_results(bench.spark)
            for count in (few, many)
        }
        cpu = best_cpu(measure_in_turns(forms, repeat))
        report_progress(f"{most} rules, once")
        first_run = run_once(lambda: rules[most].write_results(bench.spark))
    what = f"{many} rules, CPU of {few} rules"
    figures = (
        Figure.of_ratio(what, cpu[str(many)], cpu[str(few)], 3.0),
        Figure(what=f"{most} rules, errors", value="error" in first_run, unit="", target=0),
    )
    return Measurement(figures=figures, details={"rows": rows, f"{most} rules": first_run})


def run_once(work: Callable[[], object]) -> dict[str, object]:
    """What the work took, or the error that it raised."""
    try:
        return asdict(measure_cost(work))
    except Exception as error:  # a stack overflow in the JVM comes as one of py4j's or PySpark's
        return {"error": str(error)[:1_000]}


def measure_compiler(rules: int = 200, repeat: int = 7) -> Measurement:
    """P3: a rule set from the text of its file to SQL: read, check, analyse, compile."""
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
        file = write_rule_set(Path(folder), rules)
        compile_rules(file)  # imports and caches
        seconds = [time_compiler(file) for _ in range(repeat)]
    figure = Figure(
        what=f"{rules} rules from YAML to SQL, best of {repeat}",
        value=round(1000 * min(seconds), 1),
        unit="ms",
        target=300,
    )
    return Measurement(figures=(figure,))


def time_compiler(file: Path) -> float:
    begun = time.perf_counter()
    compile_table(load_judged(file, {}).tables[0], file.name)
    return time.perf_counter() - begun


def measure_reads(bootstrap: str, rows: int = 20_000) -> Measurement:
    """P4: one batch of the quality job over a topic in which nothing is bad."""
    topic = "bench-quality"
    with open_session(bootstrap) as bench:
        Topics(bootstrap).create([TopicSpec(topic, 2, 1), TopicSpec(f"{topic}.dlq", 1, 1)])
        fill_topic(bootstrap, topic, rows)
        before = len(list_plans(bench.spark))
        accepted = run_quality(bench, topic)
        plans = list_plans(bench.spark)[before:]
    reads = sum(jobs for plan, jobs in plans if reads_topic(plan))
    if reads == 0 or accepted != rows:
        raise SystemExit(f"{reads} plans read the topic, {accepted} of {rows} rows were accepted")
    figure = Figure(
        what="Spark jobs of a batch that read the topic", value=reads, unit="", target=1
    )
    return Measurement(figures=(figure,), details={"all_jobs": sum(jobs for _, jobs in plans)})


def run_quality(bench: BenchSession, topic: str) -> int:
    """Run the job as the engine runs it; the number of rows that its ledger accepts."""
    folder = bench.new_folder()
    (folder / "rules").mkdir(parents=True)
    columns = {"id": "STRING", "amount": "DOUBLE", "at": "TIMESTAMP(3)"}
    source = {"topic": topic, "table": "events", "columns": columns, "event_time": "at"}
    rules = [{"name": f"rule_{n}", "when": f"amount < {-n - 1}"} for n in range(10)]
    table = {"name": "reads", "pk": "id", "sources": {"onprem": source}, "rules": rules}
    plain = {"version": 2, "tables": [{**table, "on_fail": "dead_letter"}]}
    (folder / "rules" / "reads.yml").write_bytes(orjson.dumps(plain))
    settings = bench.settings.model_copy(update={"root": folder, "home": bench.new_folder()})
    with OpsStore.open(f"sqlite:///{bench.folder}/ops.db") as store:
        context = bench.claim_job(settings, store, "quality-reads")
        JOBS[context.run.kind](context)
        return sum(row.outcomes.get("accepted", 0) for row in store.ledger(context.run.job))


@dataclass(frozen=True)
class CompiledRules:
    """A rule set compiled to SQL over the view of the rows."""

    table: JudgedTable
    script: Script

    def write_results(self, spark: SparkSession) -> None:
        """Create the views as a batch does, and write the row results."""
        for step in ("clock", "view"):
            for statement in self.script.named(step):
                spark.sql(statement)
        write_noop(spark, f"SELECT * FROM {RESULTS}")

    def render_case(self) -> str:
        """What one might write by hand: a CASE that finds the first failing rule."""
        rules = [
            (rule.name, to_spark(rule.condition)) for rule in self.table.rules if rule.condition
        ]
        branches = " ".join(f"WHEN {condition} THEN '{name}'" for name, condition in rules)
        return f"SELECT *, CASE {branches} ELSE 'VALID' END AS dq_status FROM {SOURCE}"


def compile_rules(file: Path) -> CompiledRules:
    table = load_judged(file, {}).tables[0]
    sources = (f"{source.table}_source" for source in table.table.sources.values())
    text = compile_table(table, file.name).text
    return CompiledRules(table, parse_rule_script(file.name, text, sources))


def write_noop(spark: SparkSession, query: str) -> None:
    spark.sql(query).write.format("noop").mode("overwrite").save()


def write_rows(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    """Rows with many different values, as events have them: dictionary encoding gains nothing."""

    def draw(at: int, below: int) -> str:
        return f"pmod(xxhash64(id, {at}), {below})"

    amounts = ("balance", "credit", "spent", "refund", "score")
    columns = [
        "concat('c-', lpad(CAST(id AS STRING), 9, '0')) AS customer_id",
        f"IF({draw(1, 100)} < 5, 'DELETE', 'UPSERT') AS action",
        "sha2(CAST(id AS STRING), 256) AS row_hash",
        f"concat('user', {draw(2, 1_000_000)}, '@example', {draw(3, 100)}, '.com') AS email",
        f"concat('+49', {draw(4, 10_000_000_000)}) AS phone",
        f"element_at(array{COUNTRIES}, CAST({draw(5, 8)} + 1 AS INT)) AS country",
        f"concat('city ', {draw(6, 5_000)}) AS city",
        *(f"{draw(11 + at, 10_000_000)} / 100D AS {name}" for at, name in enumerate(amounts)),
        f"CAST({draw(7, 90)} + 10 AS INT) AS age",
        f"CAST({draw(8, 1_000)} AS INT) AS visits",
        f"CAST({draw(10, 7)} AS INT) AS tier",
        f"{draw(9, 1_000_000_000)} AS account",
        f"{draw(20, 2)} = 0 AS active",
        f"timestamp_millis(1700000000000 + {draw(21, 86_400_000)}) AS at",
        f"timestamp_millis(1690000000000 + {draw(22, 864_000_000)}) AS created",
        f"date_add(DATE '1950-01-01', CAST({draw(23, 20_000)} AS INT)) AS born",
    ]
    file = str(folder / "rows.parquet")
    spark.range(rows).selectExpr(*columns).coalesce(4).write.parquet(file)
    return spark.read.parquet(file)


def make_rule(kind: str, at: int, draws: random.Random) -> dict[str, Any]:
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
            return {"type": "regex", "field": "email", "pattern": "[a-z0-9]@[a-z0-9.]"}


def make_rule_set(count: int, mix: Mapping[str, int]) -> dict[str, Any]:
    """So many rules in the mix; the fourth and the last hold on half a per cent of the rows each."""
    draws = random.Random(SEED)
    kinds = draws.sample([kind for kind, n in mix.items() for _ in range(n)], sum(mix.values()))
    rules = [make_rule(kinds[at % len(kinds)], at, draws) for at in range(count)]
    rules[3], rules[-1] = {"when": "visits < 5"}, {"when": "visits BETWEEN 5 AND 9"}
    source = {"iceberg": "bench.rows", "table": "bench_rows", "columns": TYPES, "event_time": "at"}
    named = [{"name": f"rule_{at}", **rule} for at, rule in enumerate(rules)]
    table = {"name": TABLE, "pk": "customer_id", "sources": {"onprem": source}, "rules": named}
    return {"version": 2, "tables": [table]}


def write_rule_set(folder: Path, count: int, mix: Mapping[str, int] = TEXTS) -> Path:
    file = folder / f"rules_{count}_{len(mix)}.yml"
    file.write_bytes(orjson.dumps(make_rule_set(count, mix), option=orjson.OPT_INDENT_2))
    return file


def fill_topic(bootstrap: str, topic: str, rows: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for at in range(rows):
        value = {"id": f"k{at}", "amount": at % 100, "at": f"2024-01-01T10:00:{at % 60:02d}Z"}
        producer.produce(topic, orjson.dumps(value), str(at).encode())
        producer.poll(0)
    producer.flush()


def list_plans(spark: SparkSession) -> list[tuple[str, int]]:
    """The plan of each query so far, and how many Spark jobs it took."""
    store: Any = spark._jsparkSession.sharedState().statusStore()  # pyright: ignore
    executions: Any = store.executionsList()
    each = (executions.apply(at) for at in range(executions.size()))
    return [
        (str(execution.physicalPlanDescription()), int(execution.jobs().size()))
        for execution in each
    ]


def reads_topic(plan: str) -> bool:
    """A batch of a stream is a scan of the records that it was given."""
    return "Scan ExistingRDD" in plan or "kafka" in plan.lower().partition("batchscan")[2][:40]
