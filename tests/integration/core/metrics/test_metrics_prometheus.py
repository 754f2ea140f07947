"""What Prometheus itself makes of the endpoint; its programs are part of `make setup-system`."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import orjson
import pytest
from tests.support.metric_windows import SHAPE, event_time, settle_batch

from headgate.core.ledger.model import JobSpec, RuleCount, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.metrics.prometheus import MetricsServer, exposition
from headgate.core.metrics.readings import EngineReading, JobLag, Readings
from headgate.core.metrics.windows import Emitter
from headgate.core.runtime.ports import any_port
from headgate.local.observability import PROMETHEUS_FILE

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[4]
HOSTILE = 'rule "with"\\ all\n{signs}'
AS_QUERY = HOSTILE.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
COUNTS = (RuleCount("amount", "negative", "ERROR", 3, 5), RuleCount(HOSTILE, "error", "WARN", 1, 1))


def tool(name: str) -> str:
    """A program that a user may lack; whoever checks changes must not."""
    found = shutil.which(name)
    if found is None and os.environ.get("CI") == "true":
        pytest.fail(f"{name} is not installed: make setup-system")
    if found is None:
        pytest.skip(f"{name} is not installed: make setup-system")
    return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OpsStore]:
    with OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}") as store:
        Emitter(store, SHAPE, lambda _: {})
        run = store.submit(JobSpec(SHAPE.job, "quality", "orders", "streaming", "r"))
        store.move(run.job, run.number, RunState.RUNNING)
        store.register_sink("kafka")
        settle_batch(store, 0, {0: event_time(0)}, COUNTS, accepted=9, refused=1)
        yield store


def readings(store: OpsStore) -> Readings:
    engine = EngineReading(1, 2, 1, 100_000_000, 2_000_000_000)
    return Readings(store, lambda: engine, lambda: [JobLag(SHAPE.job, "orders.events", 5)])


def test_promtool_finds_no_fault_with_the_text(store: OpsStore) -> None:
    text = exposition(readings(store).families())
    done = subprocess.run(
        [tool("promtool"), "check", "metrics"], input=text, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_promtool_finds_no_fault_with_the_shipped_configuration() -> None:
    done = subprocess.run(
        [tool("promtool"), "check", "config", str(ROOT / PROMETHEUS_FILE)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_can_read_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    dashboard = orjson.loads((ROOT / "infra/grafana/dashboards/pipeline.json").read_bytes())
    asked = [t["expr"] for panel in dashboard["panels"] for t in panel["targets"]]
    rules = [{"record": f"panel:{n}", "expr": expression} for n, expression in enumerate(asked)]
    file = tmp_path / "rules.yml"
    file.write_bytes(orjson.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        [tool("promtool"), "check", "rules", str(file)], capture_output=True, text=True
    )
    assert f"{len(asked)} rules found" in done.stdout, done.stderr


def test_a_restart_of_the_engine_resets_no_counter(store: OpsStore, tmp_path: Path) -> None:
    port = any_port()
    with prometheus(tool("prometheus"), port, tmp_path) as ask:
        with serving(store, port):
            assert until(lambda: ask("dq_error_total")) == 3
            assert until(lambda: ask(f'dq_rule_error_total{{rule="{AS_QUERY}"}}')) == 1
            assert until(lambda: ask("headgate_cores_free")) == 1
        settle_batch(store, 10, {0: event_time(0)}, COUNTS, accepted=9, refused=1)
        with serving(store, port):
            assert until(lambda: 1 if ask("dq_error_total") == 6 else None) == 1
            assert until(lambda: ask("headgate_records_read_total")) == 20
            assert ask("resets(dq_error_total[5m])") == 0


@contextmanager
def serving(store: OpsStore, port: int) -> Iterator[None]:
    server = MetricsServer(port, readings(store))
    server.start()
    try:
        yield
    finally:
        server.close()


@contextmanager
def prometheus(program: str, port: int, home: Path) -> Iterator[Callable[[str], float | None]]:
    """A real Prometheus that scrapes the endpoint every half second; asks it for one value."""
    text = (
        (ROOT / PROMETHEUS_FILE).read_text("utf-8").replace("localhost:9249", f"127.0.0.1:{port}")
    )
    (home / "prometheus.yml").write_text(text.replace("15s", "500ms"))
    own = any_port()
    process = subprocess.Popen(
        [
            program,
            f"--config.file={home / 'prometheus.yml'}",
            f"--storage.tsdb.path={home / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{own}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=(home / "prometheus.log").open("ab"),
    )

    def ask(query: str) -> float | None:
        try:
            with urlopen(f"http://127.0.0.1:{own}/api/v1/query?query={quote(query)}") as answer:
                found: Any = orjson.loads(answer.read())["data"]["result"]
        except URLError:
            return None
        return float(found[0]["value"][1]) if found else None

    try:
        yield ask
    finally:
        process.terminate()
        process.wait(60)


def until(value: Callable[[], float | None], seconds: float = 120) -> float | None:
    end = time.monotonic() + seconds
    while (found := value()) is None and time.monotonic() < end:
        time.sleep(0.1)
    return found
