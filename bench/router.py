"""P13: an approved revision live, and a rollback, beside 500 filters on one query.

The figure is what a person waits for: from the order to deploy until the control plane calls it
deployed, which it does when the router has recorded the cutover. Every other round the topic is
idle; in between events come at a steady rate. The router runs as a stream, as the engine runs it,
and the reconciler steps as often as under `headgate serve`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from statistics import median, quantiles
from typing import Any

import orjson
from confluent_kafka import Producer

from bench.goals import Figure, Measurement
from bench.session import BenchSession, open_session
from bench.timing import report_progress
from headgate.core.engine.job_kind import JOBS
from headgate.core.engine.run import RunContext
from headgate.core.identity.roles import Identity
from headgate.core.kafka.topics import Topics, TopicSpec
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.api.service import RECONCILE_EVERY
from headgate.filters.control.reconciler import Reconciler
from headgate.filters.control.service import FilterService
from headgate.filters.store.control import ControlStore
from headgate.filters.store.model import Operation, OperationState, Standing
from headgate.filters.store.routing import RoutingStore
from headgate.filters.targets.deployment import EngineTarget

TARGET_SECONDS = 10.0
SOURCE, OUTPUTS = "raw-event-headers", 5
AUTHOR = Identity("ann", frozenset({"author", "deployer"}))
APPROVER = Identity("bob", frozenset({"approver"}))
EVENTS_PER_SECOND = 100
MAX_WAIT_SECONDS = 120.0


def measure_deployments(bootstrap: str, filters: int = 500, rounds: int = 20) -> Measurement:
    with open_session(bootstrap) as bench:
        Topics(bootstrap).create([TopicSpec(SOURCE, 3, 1)])
        with OpsStore.open(f"sqlite:///{bench.folder}/router.db") as store:
            seconds, details = run_rounds(bench, store, filters, rounds)
    figures = tuple(
        Figure(
            what=f"{order} to live, p95 of {rounds}, beside {filters} filters",
            value=round(percentile_95(times), 2),
            unit="s",
            target=TARGET_SECONDS,
        )
        for order, times in seconds.items()
    )
    return Measurement(figures=figures, details=details)


def run_rounds(
    bench: BenchSession, store: OpsStore, filters: int, rounds: int
) -> tuple[dict[str, list[float]], dict[str, object]]:
    """Deploy all filters, then a new revision of one and its rollback, again and again."""
    targets = {"engine": EngineTarget(store.part(RoutingStore))}
    service = FilterService(store, None, targets, deadline=timedelta(minutes=10))
    for number in range(filters):
        record = service.create(AUTHOR, make_filter(number))
        service.approve(APPROVER, record.id, record.revision)
        service.deploy(AUTHOR, record.id)
    traffic = Traffic(bench.bootstrap)
    with run_router(bench, store) as context, run_reconciler(Reconciler(store, None, targets)):
        wait_until_live(store, filters)
        traffic.on.set()
        wait_for(lambda: len(store.ledger(context.run.job)) > 3, "the first batches")
        seconds = time_orders(service, traffic, rounds)
        traffic.end()
        wait_for(
            lambda: sum(row.read for row in store.ledger(context.run.job)) == traffic.sent,
            "every event judged",
        )
        if store.run(context.run.job, context.run.number).restarts:
            raise SystemExit("the query was restarted meanwhile")
    batches = [
        (row.committed_at - row.batch_time).total_seconds() for row in store.ledger(context.run.job)
    ]
    return seconds, {
        "events": traffic.sent,
        "batches": len(batches),
        "batch_seconds_median": round(median(batches), 2),
        "worst_seconds": {order: round(max(times), 2) for order, times in seconds.items()},
    }


def wait_until_live(store: OpsStore, filters: int) -> None:
    def count_live() -> int:
        return sum(seen.standing is Standing.LIVE for seen in store.part(RoutingStore).seen())

    running = (OperationState.RUNNING,)
    wait_for(lambda: count_live() == filters, "all filters live")
    wait_for(
        lambda: not store.part(ControlStore).operations(states=running), "all filters deployed"
    )


def time_orders(service: FilterService, traffic: Traffic, rounds: int) -> dict[str, list[float]]:
    """Seconds of each deployment and rollback; every other round while events come."""
    seconds: dict[str, list[float]] = {"deploy": [], "rollback": []}
    for number in range(1, rounds + 1):
        report_progress(f"round {number} of {rounds}")
        traffic.on.set() if number % 2 else traffic.on.clear()
        record = service.get(make_filter(0)["id"])
        record = service.update(AUTHOR, record.id, make_filter(0, number), record.etag)
        service.approve(APPROVER, record.id, record.revision)
        seconds["deploy"].append(time_order(service, service.deploy(AUTHOR, record.id)))
        seconds["rollback"].append(time_order(service, service.rollback(AUTHOR, record.id)))
    return seconds


def time_order(service: FilterService, operation: Operation) -> float:
    """Seconds from the order, which was given just now, to its success."""
    begun = time.perf_counter()
    wait_for(
        lambda: service.operation(operation.id).state is not OperationState.RUNNING, operation.kind
    )
    done = service.operation(operation.id)
    if done.state is not OperationState.SUCCEEDED:
        raise SystemExit(f"{operation.kind}: {done}")
    return time.perf_counter() - begun


def percentile_95(times: list[float]) -> float:
    return quantiles(times, n=20, method="inclusive")[-1] if len(times) > 1 else times[0]


def wait_for(is_done: Callable[[], bool], what: str) -> None:
    report_progress(f"waiting: {what}")
    end = time.monotonic() + MAX_WAIT_SECONDS
    while not is_done():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {MAX_WAIT_SECONDS:g} s")
        time.sleep(0.02)


def make_filter(number: int, change: int = 0) -> dict[str, Any]:
    name = f"dealer-{number:04d}"
    return {
        "id": name,
        "name": name,
        "description": f"change {change}",
        "consumerId": f"{name}-consumer",
        "outputTopic": f"filtered-{number % OUTPUTS}",
        "source": SOURCE,
        "enabled": True,
        "conditions": [
            {"field": "event_type", "operator": "equals", "value": "CarServiceDone"},
            {"field": "header_data.dealerId", "operator": "equals", "value": f"DEALER-{number:04d}"},
            *([{"field": "header_data.round", "operator": "greaterThan", "valueType": "number", "value": change}] if change else []),
        ],
    }  # fmt: skip


def make_event(number: int) -> bytes:
    header = {"dealerId": f"DEALER-{number % 500:04d}", "carId": f"CAR-{number}", "round": number}
    return orjson.dumps(
        {
            "id": f"event-{number}",
            "event_name": "Car Service Done",
            "event_type": "CarServiceDone",
            "created_date": "2025-01-15T10:00:00Z",
            "saved_date": "2025-01-15T10:00:01Z",
            "header_data": orjson.dumps(header).decode(),
            "__op": "c",
            "__table": "event_headers",
            "__ts_ms": 1736935200000 + number,
        }
    )


class Traffic:
    """Events at a steady rate while it is on."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        self.on = threading.Event()
        self.sent = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(0.1):
            if self.on.is_set():
                for _ in range(EVENTS_PER_SECOND // 10):
                    self._producer.produce(
                        SOURCE, make_event(self.sent), f"event-{self.sent}".encode()
                    )
                    self.sent += 1
            self._producer.poll(0)

    def end(self) -> None:
        self._end.set()
        self._thread.join()
        self._producer.flush(30)


@contextmanager
def run_router(bench: BenchSession, store: OpsStore) -> Iterator[RunContext]:
    """The router as a stream, in a thread."""
    context = bench.claim_job(bench.settings, store, f"router-{SOURCE}", "streaming")
    failures: list[BaseException] = []

    def work() -> None:
        try:
            JOBS["router"](context)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield context
    finally:
        context.stop.set()
        thread.join(60)
    if failures:
        raise failures[0]


@contextmanager
def run_reconciler(reconciler: Reconciler) -> Iterator[None]:
    """The reconciler of the control plane, in a thread."""
    end = threading.Event()

    def work() -> None:
        while not end.wait(RECONCILE_EVERY):
            reconciler.step()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
