"""The services a supervisor can run: how each is started, asked, explained and stopped."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from headgate.errors import ConflictError
from headgate.local import kafka
from headgate.local.process import Child, Command, choose_port, port_answers, read_log, runs_ours
from headgate.local.service import Ended
from headgate.local.state import BROKER, ENGINE, LocalFiles, Plan

ENGINE_STOP_SECONDS = 60.0
BROKER_STOP_SECONDS = 20.0
# Exit codes of our own commands after which the same start would fail the same way.
FINAL_EXIT_CODES = frozenset({2, 3, 6, 7})


class BrokerService:
    """The embedded Kafka."""

    name = BROKER

    def __init__(self, files: LocalFiles, plan: Plan) -> None:
        port = choose_port(plan.kafka_port, "KAFKA_PORT", exact=plan.exact_port)
        other = choose_port(port + 1, "the controller's port", taken=(port,))
        self._runtime = kafka.kafka_runtime()
        self._broker = kafka.Broker(files.home / "kafka", port, other, files.log(BROKER))
        self.address: str | None = self._broker.bootstrap

    def command(self) -> Command:
        kafka.prepare(self._broker, self._runtime)
        return kafka.command(self._broker, self._runtime)

    def ready(self, child: Child) -> bool:
        return kafka.ready(self._broker)

    def explain(self, child: Child) -> Ended:
        why, fix = kafka.why_it_ended(self._broker.log, child.exit_code, child.log_from)
        return Ended(why, fix, retry=why not in kafka.FINAL_CAUSES)

    def endpoints(self) -> Mapping[str, str]:
        return {"BOOTSTRAP_SERVERS": self._broker.bootstrap}

    def stop(self, child: Child) -> None:
        kafka.stop(self._broker, self._runtime, child, BROKER_STOP_SECONDS)


class EngineService:
    """The Spark application that hosts the jobs; it says in a file where it listens."""

    name = ENGINE

    def __init__(self, files: LocalFiles, plan: Plan) -> None:
        self._files, self._plan = files, plan
        self.address: str | None = None
        self._endpoints: dict[str, str] = {}

    def command(self) -> Command:
        self._refuse_beside_another()
        self._files.engine.unlink(missing_ok=True)
        self._endpoints, self.address = {}, None
        argv = (sys.executable, "-m", "headgate.cli.main", "engine", "run")
        env = {**os.environ, "HEADGATE_HOME": str(self._files.home), "PYTHONUNBUFFERED": "1"}
        return Command(argv, self._files.log(ENGINE), self._plan.root, env)

    def _refuse_beside_another(self) -> None:
        """An engine that a person started here is the active one; ours would only stand by."""
        found = self._files.read_engine()
        if found is not None and runs_ours(found.pid):
            raise ConflictError(
                "an engine already runs here",
                why=f"process {found.pid} was not started by `headgate local up`",
                fix="stop it, or start the broker alone with --only broker",
            )

    def ready(self, child: Child) -> bool:
        found = self._files.read_engine()
        if found is None or found.pid != child.pid or found.state != "ready":
            return False
        if not port_answers(found.connect_port):
            return False
        self.address = f"sc://localhost:{found.connect_port}"
        self._endpoints = {"CONNECT_URL": self.address}
        if found.connect_token:
            self._endpoints["CONNECT_TOKEN"] = found.connect_token
        if found.ui_port:
            self._endpoints["SPARK_UI_URL"] = f"http://localhost:{found.ui_port}"
        if found.metrics_port:
            self._endpoints["METRICS_URL"] = f"http://localhost:{found.metrics_port}/metrics"
        return True

    def explain(self, child: Child) -> Ended:
        code = child.exit_code
        # A killed process had no time to say why: the last line of its log is about something else.
        killed = f"it was killed by signal {-code}" if code is not None and code < 0 else ""
        why, fix = ("", "") if killed else last_error(read_log(child.command.log, child.log_from))
        retry = code not in FINAL_EXIT_CODES
        return Ended(killed or why or f"exit code {code}", fix or "headgate local logs", retry)

    def endpoints(self) -> Mapping[str, str]:
        return self._endpoints

    def stop(self, child: Child) -> None:
        child.stop(ENGINE_STOP_SECONDS)
        self._files.engine.unlink(missing_ok=True)


def last_error(log: str) -> tuple[str, str]:
    """What one of our own commands said before it ended: its reason and its advice."""
    lines = log.splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith("error HG-")]
    if not starts:
        spoken = [line for line in lines if line.strip()]
        return (spoken[-1].strip()[:200] if spoken else ""), ""
    told = lines[starts[-1] : starts[-1] + 10]
    reasons = [line.partition("why: ")[2] for line in told if line.startswith("  why: ")]
    advice = [line.partition("do: ")[2] for line in told if line.startswith("  do: ")]
    return "; ".join([told[0].partition(": ")[2], *reasons]), "; ".join(advice)
