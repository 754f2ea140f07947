"""The runner of fault scenarios: its order, what it measures, and what breaks a scenario off."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from bench.faults.scenario import Load, Outage, PlannedOutage, Report, Scenario, run_scenario

from headgate.errors import DifferenceError, OperationError


class Sender(Load):
    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.failure = error

    def send(self) -> None:
        self.sent = 7
        if self.failure:
            raise self.failure
        self.ending.wait(30)


@dataclass(frozen=True)
class Finding(Report):
    outages: tuple[Outage, ...]
    wrong: tuple[str, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        return self.wrong


@dataclass
class TwoOutages(Scenario[Sender, Finding]):
    """Notes every step; `broker` comes back by what is called, `engine` by itself."""

    wrong: tuple[str, ...] = ()
    steps: list[str] = field(default_factory=list[str])

    def note(self, step: str) -> Callable[[], None]:
        return lambda: self.steps.append(step)

    def begin(self) -> None:
        assert not self.load.is_alive()
        self.steps.append("begin")

    def watch_progress(self) -> Callable[[], bool]:
        self.steps.append("watch")
        return lambda: self.load.sent > 0

    def plan_outages(self) -> Iterator[PlannedOutage]:
        yield PlannedOutage(
            "broker",
            self.note("kill broker"),
            symptoms=lambda: {"client": tuple(self.steps[-1:])},
            restore=self.note("start broker"),
            under_way=lambda: 3,
        )
        self.steps.append("between")
        yield PlannedOutage("engine", self.note("kill engine"), watch=lambda: lambda: True)

    def drain(self) -> None:
        assert not self.load.is_alive()
        self.steps.append("drain")

    def report(self, outages: Sequence[Outage], seconds: float, drained_seconds: float) -> Finding:
        assert seconds >= drained_seconds
        return Finding(tuple(outages), self.wrong)


def test_outages_come_in_turn_under_a_load_that_is_drained_in_the_end(tmp_path: Path) -> None:
    scenario = TwoOutages(Sender(), print)
    report = run_scenario(scenario, tmp_path / "new" / "report.json", "look there")
    *before, between = scenario.steps[:6]
    assert before == ["begin", "watch", "kill broker", "start broker", "watch"]
    assert [between, *scenario.steps[6:]] == ["between", "kill engine", "drain"]
    broker, engine = report.outages
    assert (broker.what, broker.sent, broker.under_way) == ("broker", 7, 3)
    assert broker.symptoms == {"client": ("kill broker",)}
    assert (engine.under_way, engine.symptoms) == (1, {})
    assert json.loads((tmp_path / "new" / "report.json").read_bytes())["faults"] == []


def test_a_report_with_faults_is_written_and_raised(tmp_path: Path) -> None:
    scenario = TwoOutages(Sender(), print, wrong=("a row is missing", "one is there twice"))
    with pytest.raises(DifferenceError) as raised:
        run_scenario(scenario, tmp_path / "report.json", "look there")
    assert (raised.value.why, raised.value.fix) == (
        "a row is missing\none is there twice",
        "look there",
    )
    written = json.loads((tmp_path / "report.json").read_bytes())
    assert written["faults"] == list(scenario.wrong)


def test_a_load_that_fails_breaks_the_scenario_off(tmp_path: Path) -> None:
    scenario = TwoOutages(Sender(ValueError("no more events")), print)
    with pytest.raises(OperationError) as raised:
        run_scenario(scenario, tmp_path / "report.json", "look there")
    assert raised.value.why == "no more events"
    assert "drain" not in scenario.steps
    assert not (tmp_path / "report.json").exists()


def test_what_does_not_come_in_time_is_named() -> None:
    scenario = TwoOutages(Sender(), print)
    with pytest.raises(OperationError, match=r"there was no new broker within 0 s"):
        scenario.wait_for(lambda: False, "new broker", 0.0)
