"""How often all keys of a pair are counted: the more of them, the less often; and who was in time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from pydantic import TypeAdapter

from headgate.quality.spec.reconcile_section import Reconcile, Slo
from headgate.reconcile.job.publishers import (
    FEW_STATES,
    SECONDS,
    Counted,
    InTime,
    StandingHook,
    count_query,
    pause,
)


def test_a_quick_count_is_made_every_few_seconds() -> None:
    assert pause(0.1, 1_000) == SECONDS


def test_of_few_states_counting_takes_a_tenth_of_the_time_at_most() -> None:
    assert pause(4.0, FEW_STATES) == 40.0


def test_of_many_states_it_takes_a_hundredth() -> None:
    assert pause(30.0, FEW_STATES + 1) == 3_000.0


def test_an_hours_outage_shows_although_millions_were_in_time_before() -> None:
    found = Counted({}, ever=InTime(10_000_000, 9_999_000), lately=InTime(24_000, 23_000))
    assert found.ever.share is not None
    assert found.share_lately is not None
    assert found.ever.share > 0.999 > found.share_lately


def test_where_none_was_settled_lately_all_count() -> None:
    assert Counted({}, InTime(4, 3), InTime(0, 0)).share_lately == 0.75
    assert Counted({}, InTime(0, 0), InTime(0, 0)).share_lately is None


def test_lately_is_by_when_a_key_was_settled() -> None:
    query = count_query("spark_catalog.default.dq_results_x", datetime(2026, 1, 1, tzinfo=UTC))
    assert "count_if(settled AND event_time >= TIMESTAMP" in query
    assert "2026-01-01" in query
    assert query.endswith("FROM spark_catalog.default.dq_results_x GROUP BY dq_status, rollup")


class TimedStandingHook(StandingHook):
    """Counts that take no time, with a clock of the test's."""

    def __init__(self) -> None:
        self.now, self.last_batch, self.counts = 0.0, 1, list[str]()
        context = SimpleNamespace(
            session=SimpleNamespace(newSession=lambda: None), run=SimpleNamespace(mode="streaming")
        )
        super().__init__(
            cast("Any", context), cast("Any", None), Reconcile, monotonic=lambda: self.now
        )

    def _stands(self) -> tuple[object, ...]:
        return (self.last_batch,)

    def _states(self) -> int:
        return 1_000

    def tell(self) -> None:
        self._counted = self._stands()
        self.counts.append(f"told at {self.now:.0f}")

    def _keep_gauges(self) -> None:
        self.counts.append(f"kept at {self.now:.0f}")


def test_what_was_settled_lately_is_counted_again_while_nothing_comes() -> None:
    hook = TimedStandingHook()
    for second in range(0, 150, 5):
        hook.now = second
        hook.last_batch = 1 if second < 130 else 2
        hook.tick()
    assert hook.counts == ["told at 0", "kept at 60", "kept at 120", "told at 130"]


def test_the_objective_is_over_a_day_unless_declared() -> None:
    assert (Slo().over, Slo().within_grace) == (timedelta(days=1), 0.999)
    declared = TypeAdapter(Slo).validate_python({"within_grace": 0.9, "over": "2 HOURS"})
    assert declared.over == timedelta(hours=2)
