"""The report of a reconciliation as values: counts, times, kinds, what changed; escaped and whole."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.reconcile_evidence import HOSTILE, NOON, STATUSES, evidence, header

from headgate.reconcile.decision_table import statuses
from headgate.reconcile.report.make import Step, make_report, points_of, rollup_of
from headgate.reconcile.report.model import Objective, ReconcileReport
from headgate.reconcile.report.render import (
    Stack,
    colour_of,
    read_before,
    report_html,
    report_json,
    report_text,
    stacks_svg,
    top_of,
)


@pytest.fixture(scope="module")
def report() -> ReconcileReport:
    return make_report(header(), evidence())


def test_every_key_counts_once_in_a_status_and_once_in_a_roll_up(report: ReconcileReport) -> None:
    assert sum(line.keys for line in report.statuses) == report.keys == sum(STATUSES.values())
    assert sum(line.keys for line in report.rollups) == report.keys
    assert report.rollup("pending").keys == 40


def test_a_status_that_only_a_rule_gives_counts_as_the_results_roll_it_up() -> None:
    """A warning keeps the roll-up of the verdict beneath it, key by key."""
    of_rule = {"valid": 172, "missing": 130, "invalid": 157}
    known = replace(
        evidence(),
        statuses={"MATCH": 10, "TOO_HEAVY": 459},
        rollups={"MATCH": {"valid": 10}, "TOO_HEAVY": of_rule},
    )
    made = make_report(header(), known)
    assert {line.rollup: line.keys for line in made.rollups} == {
        "valid": 182, "invalid": 157, "missing": 130, "pending": 0,
    }  # fmt: skip
    assert made.statuses[-1].rollup == "valid, missing, invalid"
    assert rollup_of("TOO_OLD") == "invalid"
    assert colour_of("TOO_OLD") == "c-s10"


def test_each_status_that_is_not_valid_has_its_own_colour() -> None:
    wrong = [name for name, known in statuses().items() if known.rollup != "valid"]
    assert len({colour_of(name) for name in wrong}) == len(wrong)


def test_the_plot_ends_where_the_keys_are_now(report: ReconcileReport) -> None:
    assert report.points[-1].statuses == STATUSES
    assert all(point.keys == report.keys for point in report.points)


def test_a_long_time_is_drawn_in_few_points_and_loses_no_change() -> None:
    many = [Step(NOON + timedelta(seconds=n), "MATCH", 1) for n in range(10_000)]
    points = points_of(many, most=60)
    assert len(points) == 60
    assert points[-1].statuses == {"MATCH": 10_000}
    assert points_of(()) == ()


def test_changes_are_against_the_report_before(report: ReconcileReport) -> None:
    changes = {line.status: line.change for line in report.statuses}
    assert (changes["MATCH"], changes["MISMATCH"]) == (100, 20)
    assert report.since is not None
    assert report.since.keys == 120


def test_a_first_report_says_nothing_of_changes() -> None:
    first = make_report(header(), evidence(before=False))
    assert first.since is None
    assert {line.change for line in first.statuses} == {None}
    assert "Since the last report" not in report_html(first)


def test_kinds_come_with_their_columns_and_a_few_examples(report: ReconcileReport) -> None:
    kinds = {line.kind: (line.keys, dict(line.columns)) for line in report.kinds.lines}
    assert kinds["real"] == (400, {"col2": 400})
    assert kinds["null_empty"] == (100, {"col1": 100})
    assert report.kinds.equal == 1
    assert all(1 <= len(line.examples) <= 5 for line in report.kinds.lines)


def test_a_record_without_an_outcome_does_not_add_up() -> None:
    wrong = make_report(header(), replace(evidence(), read=40_321))
    assert not wrong.adds_up
    assert "do not add up" in report_html(wrong)
    assert "✗ does not add up" in report_text(wrong)


def test_an_objective_is_missed_by_one_key_too_many() -> None:
    assert Objective(0.999, 1000, 999).met
    assert not Objective(0.999, 1000, 998).met
    assert Objective(0.999, 0, 0).met


def test_nothing_in_the_page_is_taken_for_markup(report: ReconcileReport) -> None:
    page = report_html(report)
    assert HOSTILE not in page
    assert "<img" not in page
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in page


def test_the_page_fetches_nothing(report: ReconcileReport) -> None:
    page = report_html(report)
    assert not re.search(r"""(src|href)\s*=\s*["']""", page)
    assert "default-src &#39;none&#39;" in page


def test_the_json_is_read_back_as_the_report_before(
    tmp_path: Path, report: ReconcileReport
) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(report_json(report))
    body = json.loads(file.read_text("utf-8"))
    before = read_before(file)
    assert body["schema_version"] == 1
    assert body["adds_up"] is True
    assert before is not None
    assert before.statuses == STATUSES
    assert before.letters == {"dq_missing_pk": 60, "not_json": 60}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema_version": 9}'])
def test_a_file_that_is_no_report_is_not_compared_with(tmp_path: Path, text: str) -> None:
    file = tmp_path / "report.json"
    file.write_text(text)
    assert read_before(file) is None


def test_the_text_names_statuses_kinds_and_repairs(report: ReconcileReport) -> None:
    text = report_text(report)
    for word in ("MISSING_CLOUD", "zone_shift", "700 keys to send again", "(new) → MATCH: 100"):
        assert word in text


def test_an_empty_reconciliation_has_a_page_too() -> None:
    nothing = replace(
        evidence(before=False), statuses={}, steps=(), differing=(), unequal=0, letters={}
    )
    page = report_html(make_report(header(), replace(nothing, outcomes={}, read=0)))
    assert "No key has been judged yet" in page


@pytest.mark.parametrize(
    ("most", "top"), [(0, 1), (1, 1), (7, 7), (93, 93), (101, 110), (20_140, 22_000)]
)
def test_the_plot_is_as_high_as_a_round_number(most: int, top: int) -> None:
    assert most <= top_of([Stack("", {"MATCH": most})]) <= max(1.25 * most, 1)
    assert top_of([Stack("", {"MATCH": most})]) >= top * 0.9


def test_bars_stand_on_each_other_and_fill_the_plot() -> None:
    svg = stacks_svg([Stack("a", {"x": 6, "y": 4})], {"x": "c-s1", "y": "c-s2"}, "label")
    heights = [float(h) for h in re.findall(r'height="([\d.]+)"', str(svg))]
    assert sum(heights) == pytest.approx(180)
