"""P16: what a batch costs however few records it has.

Each job reads a topic that was filled before in batches of 1,000 records, as the engine runs it. The
figure is the CPU of this process and its JVM from one batch's ledger row to the next: the median of
the later batches, when the JVM has compiled what it runs.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from statistics import median

from confluent_kafka import Producer

from bench.goals import Figure, Measurement
from bench.reconcile import PARTITIONS, fill_topics, meter_batches
from bench.router import APPROVER, AUTHOR, SOURCE, make_event, make_filter
from bench.session import BenchSession, open_session
from bench.timing import report_progress
from headgate.core.engine.job_kind import JOBS
from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.control.reconciler import Reconciler
from headgate.filters.control.service import FilterService
from headgate.filters.store.routing import RoutingStore
from headgate.filters.targets.deployment import EngineTarget

TARGETS = {"bronze": 0.6, "router": 0.6, "quality": 1.2, "reconcile": 1.2}
JOB_NAMES = {
    "bronze": "bronze-taxi",
    "quality": "quality-taxi",
    "reconcile": "reconcile-business",
    "router": f"router-{SOURCE}",
}
TAXI_TOPIC = "bench-fixed-taxi"
FILTERS = 20


def measure_small_batches(
    bootstrap: str, records: int = 1_000, batches: int = 60, warm: int = 30
) -> Measurement:
    """`records` are those of a batch, `warm` the batches before the first that is counted."""
    figures: list[Figure] = []
    details: dict[str, object] = {}
    with open_session(bootstrap) as bench:
        fill_all_topics(bench, records * batches)
        for kind, job in JOB_NAMES.items():
            costs = measure_batches(bench, kind, job, records)[warm:]
            if not costs:
                raise SystemExit(f"{kind} made fewer than {warm + 1} batches")
            details[kind] = [round(cost, 2) for cost in costs]
            figures.append(
                Figure(
                    what=f"{kind}, a batch of {records:,} records, median of {len(costs)}",
                    value=round(median(costs), 2),
                    unit="CPU s",
                    target=TARGETS[kind],
                )
            )
    return Measurement(figures=tuple(figures), details=details)


def measure_batches(bench: BenchSession, kind: str, job: str, records: int) -> list[float]:
    """Run the job to the end of its topics; the CPU seconds of each batch but the first."""
    home = bench.new_folder()
    url = f"sqlite:///{home}/ops.db"
    update = {
        "home": home,
        "ops_store_url": url,
        "topic": TAXI_TOPIC,
        "dlq_topic": f"{TAXI_TOPIC}.dlq",
        "max_offsets_per_batch": records,
    }
    settings = bench.settings.model_copy(update=update)
    with OpsStore.open(url) as store:
        if kind == "router":
            deploy_filters(store)
        context = bench.claim_job(settings, store, job)
        with meter_batches(store, job) as cpu:
            JOBS[kind](context)
    return [after - before for before, after in pairwise(cpu)]


def fill_all_topics(bench: BenchSession, records: int) -> None:
    """So many records for each job; other goals may have left records on the shared topics."""
    topics = Topics(bench.bootstrap)
    topics.delete([*PARTITIONS, SOURCE])
    topics.create([TopicSpec(SOURCE, 3, 1), TopicSpec(f"{TAXI_TOPIC}.quality.dlq", 1, 1)])
    bench.fill_topic(TAXI_TOPIC, records)
    fill_topics(bench.bootstrap, records // 2)
    report_progress(f"sending {records:,} events")
    producer = Producer({"bootstrap.servers": bench.bootstrap, "linger.ms": 50, "log_level": 0})
    for number in range(records):
        producer.produce(SOURCE, make_event(number), f"event-{number}".encode())
        producer.poll(0)
    producer.flush(60)


def deploy_filters(store: OpsStore) -> None:
    """Filters that the router's first batch takes over."""
    targets = {"engine": EngineTarget(store.part(RoutingStore))}
    service = FilterService(store, None, targets, deadline=timedelta(minutes=10))
    for number in range(FILTERS):
        record = service.create(AUTHOR, make_filter(number))
        service.approve(APPROVER, record.id, record.revision)
        service.deploy(AUTHOR, record.id)
    Reconciler(store, None, targets).step()
