"""P13: an approved revision live, and a rollback, beside 500 filters on one query: python bench/router.py BOOTSTRAP

What is measured is what a person waits for: from the order to deploy until the control plane calls it
deployed, which it does when the router has recorded the cutover. Every other round the topic is idle;
in between events come at a steady rate. The router runs as a stream, as the engine runs it, and the
reconciler steps as often as under `headgate serve`.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from statistics import quantiles
from typing import Any

import orjson
from confluent_kafka import Producer
from rig import Rig, rig

from headgate.api.server import RECONCILE_EVERY
from headgate.control.deploying import Reconciler
from headgate.control.identity.model import Identity
from headgate.control.service import FilterService
from headgate.control.targets.engine import EngineTarget
from headgate.engine.context import RunContext
from headgate.engine.topics import Topics, TopicSpec
from headgate.jobs.registry import JOBS
from headgate.jobs.requests import ask_for
from headgate.store.control_model import OperationState
from headgate.store.ops import OpsStore
from headgate.store.routing_model import Standing

GOAL = 10.0
SOURCE, OUTPUTS = "raw-event-headers", 5
ANN = Identity("ann", frozenset({"author", "deployer"}))
BOB = Identity("bob", frozenset({"approver"}))
PER_SECOND = 100
LONGEST = 120.0


def document(number: int, change: int = 0) -> dict[str, Any]:
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


def event(number: int) -> bytes:
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
        self.on, self.sent = threading.Event(), 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(0.1):
            if self.on.is_set():
                for _ in range(PER_SECOND // 10):
                    self._producer.produce(SOURCE, event(self.sent), f"event-{self.sent}".encode())
                    self.sent += 1
            self._producer.poll(0)

    def end(self) -> None:
        self._end.set()
        self._thread.join()
        self._producer.flush(30)


@contextmanager
def routing(bench: Rig, store: OpsStore) -> Iterator[RunContext]:
    """The router as a stream."""
    settings = bench.settings
    asked = ask_for(settings, store, f"router-{SOURCE}", "streaming", {})
    claimed = store.claim(asked.job, asked.number, "bench")
    context = RunContext(claimed, settings, bench.session, store, lambda: None)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            JOBS["router"](context)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield context
    finally:
        context.stop.set()
        thread.join(60)
    if failed:
        raise failed[0]


@contextmanager
def reconciling(reconciler: Reconciler) -> Iterator[None]:
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


def wait(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LONGEST
    while not true():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {LONGEST:g} s")
        time.sleep(0.02)


def carried_out(service: FilterService, operation: Any) -> float:
    """Seconds from the order, which was given just now, to its success."""
    begun = time.perf_counter()
    wait(
        lambda: service.operation(operation.id).state is not OperationState.RUNNING, operation.kind
    )
    done = service.operation(operation.id)
    if done.state is not OperationState.SUCCEEDED:
        raise SystemExit(f"{operation.kind}: {done}")
    return time.perf_counter() - begun


def measure(service: FilterService, traffic: Traffic, rounds: int) -> dict[str, list[float]]:
    """Deploy a new revision, roll it back; every other time while events come."""
    found: dict[str, list[float]] = {"deploy": [], "rollback": []}
    for number in range(1, rounds + 1):
        traffic.on.set() if number % 2 else traffic.on.clear()
        record = service.get(document(0)["id"])
        record = service.update(ANN, record.id, document(0, number), record.etag)
        service.approve(BOB, record.id, record.revision)
        found["deploy"].append(carried_out(service, service.deploy(ANN, record.id)))
        found["rollback"].append(carried_out(service, service.rollback(ANN, record.id)))
    return found


def run(bench: Rig, filters: int, rounds: int) -> dict[str, object]:
    Topics(bench.bootstrap).create([TopicSpec(SOURCE, 3, 1)])
    with OpsStore.open(f"sqlite:///{bench.folder}/router.db") as store:
        targets = {"engine": EngineTarget(store.routing)}
        service = FilterService(store, None, targets, deadline=timedelta(minutes=10))
        for number in range(filters):
            record = service.create(ANN, document(number))
            service.approve(BOB, record.id, record.revision)
            service.deploy(ANN, record.id)
        traffic = Traffic(bench.bootstrap)
        with routing(bench, store) as context, reconciling(Reconciler(store, None, targets)):
            live = lambda: sum(s.standing is Standing.LIVE for s in store.routing.seen()) == filters  # noqa: E731  # one look, named
            wait(live, "all filters live")
            running = (OperationState.RUNNING,)
            wait(lambda: not store.control.operations(states=running), "all filters deployed")
            traffic.on.set()
            wait(lambda: len(store.ledger(context.run.job)) > 3, "the first batches")
            found = measure(service, traffic, rounds)
            traffic.end()
            wait(
                lambda: sum(row.read for row in store.ledger(context.run.job)) == traffic.sent,
                "every event judged",
            )
            if store.run(context.run.job, context.run.number).restarts:
                raise SystemExit("the query was restarted meanwhile")
        batches = store.ledger(context.run.job)
    took = sorted((row.committed_at - row.batch_time).total_seconds() for row in batches)
    return {
        "filters": filters,
        "rounds": rounds,
        "events": traffic.sent,
        "batches": len(batches),
        "batch_seconds_median": round(took[len(took) // 2], 2),
        "restarts_of_the_query": 0,
        **{f"{name}_p95": round(p95(times), 2) for name, times in found.items()},
        **{f"{name}_worst": round(max(times), 2) for name, times in found.items()},
    }


def p95(times: list[float]) -> float:
    return quantiles(times, n=20, method="inclusive")[-1] if len(times) > 1 else times[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bootstrap")
    parser.add_argument("--filters", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args()
    with rig(chosen.bootstrap) as bench:
        found = run(bench, chosen.filters, chosen.rounds)
    beside = f"beside {chosen.filters} filters"
    lines = [
        {"what": f"deploy to live, p95, {beside}", "figure": found["deploy_p95"], "unit": "s", "limit": GOAL},
        {"what": f"rollback to live, p95, {beside}", "figure": found["rollback_p95"], "unit": "s", "limit": GOAL},
    ]  # fmt: skip
    report = {"goal": "P13", "lines": lines, **found}
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")


if __name__ == "__main__":
    main()
