"""The report of a quality run: what it counts, what it shows, what it hides."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from random import Random

import pytest
from tests.support.quality_evidence import (
    CANARY,
    HOSTILE,
    NOON,
    evidence,
    failed_row,
    judged_table,
    rule_table,
)

from headgate.conditions.parser import parse_condition
from headgate.core.ledger.ranges import TableRange, TopicRange
from headgate.core.metrics.windows import AggregateVerdict
from headgate.declarations.types import STRING
from headgate.quality.compile.resolve import rule_words
from headgate.quality.explain import aggregate_words, verdict_line
from headgate.quality.report.build import StatusCount, make_report, range_words
from headgate.quality.report.model import MASK, QualityReport, broken_rules
from headgate.quality.report.page import (
    WIDTH,
    Bar,
    bars_svg,
    report_html,
    report_json,
    report_text,
    scale,
)
from headgate.quality.report.rows import masked_values, shown_row, spread, stratified
from headgate.quality.spec.rule_set import Aggregate, Measure
from headgate.terminal.report import percent


def report(rules: int = 0, runs: int = 3, mode: str = "batch") -> QualityReport:
    table = judged_table(rules)
    return make_report(table, evidence(table, runs, mode), NOON)


def test_every_judged_row_is_clean_or_counted_by_one_rule() -> None:
    made = report()
    assert made.judged == made.clean + sum(rule.n for rule in made.rules) == 1000
    assert sum(line.n for line in made.severities) == made.failed
    assert made.read == sum(made.outcomes.values()) == 1003
    assert made.adds_up


def test_broken_rules_are_told_by_severity() -> None:
    made = report()
    held = {r.name: r for r in made.rules if r.matched}
    errors, warnings = broken_rules(made, "ERROR"), broken_rules(made, "WARN")
    outside = [verdict for verdict in made.verdicts if not verdict.holds]
    broken = [*held.values(), *outside]
    assert outside
    assert len(errors) == sum(one.severity == "ERROR" for one in broken)
    assert len(warnings) == sum(one.severity != "INFO" for one in broken)
    assert "outside its limits" in "".join(errors)
    name = errors[0].split()[1].rstrip(":")
    assert errors[0].startswith(f"ERROR {name}: {held[name].matched:,} row")


def test_freshness_without_a_field_is_that_of_the_event() -> None:
    aggregate = Aggregate(name="late", measure="freshness", max=60)
    assert aggregate_words(aggregate) == "seconds since the newest event"


def test_a_row_that_is_missing_in_the_table_is_told() -> None:
    table = judged_table()
    known = evidence(table)
    lost = replace(known, statuses=(*known.statuses, StatusCount("INVALID", "failed", "ERROR", 1)))
    made = make_report(table, lost, NOON)
    assert not made.adds_up
    assert "does not add up" in report_text(made)
    assert "rows judged = rows in the results table: 1,000 ≠ 1,001" in report_html(made)


def test_the_rows_of_a_pair_are_those_that_its_batches_judged() -> None:
    table = judged_table()
    known = evidence(table)
    pairs = [replace(row, outcomes={"newest": row.read}) for row in known.batches]
    rows = {row.id or 0: 1000 for row in pairs}
    made = make_report(table, replace(known, batches=tuple(pairs), judged=rows), NOON)
    assert made.judged == made.clean + made.failed == 1000
    assert [point.rows for point in made.trend.points] == [1000] * 3
    assert made.adds_up


def test_the_rules_that_count_most_come_first_with_their_change() -> None:
    rules = report().rules
    assert [rule.n for rule in rules] == sorted((rule.n for rule in rules), reverse=True)
    assert rules[0].name == "no_mail"
    assert rules[0].change == 1
    assert len(rules[0].shares) == 3


def test_runs_are_the_points_of_batch_runs_and_batches_those_of_a_stream() -> None:
    assert [p.label for p in report().trend.points] == ["run 1", "run 2", "run 3"]
    assert [p.label for p in report(mode="streaming").trend.points] == [
        "batch 1",
        "batch 2",
        "batch 3",
    ]
    assert report(mode="streaming").judged == 3000
    assert report(mode="streaming").rules[0].change == 1


def test_a_schema_rule_says_what_it_asks_and_not_how() -> None:
    types = {"_missing": STRING, "_extra": STRING}
    condition = parse_condition("_missing IS NOT NULL OR _extra IS NOT NULL", types)
    rule = replace(judged_table().rules[0], condition=condition)
    words = "a declared field is missing, or there is a field that is not declared"
    assert rule_words(rule) == words


def test_a_first_run_has_no_change() -> None:
    assert {rule.change for rule in report(runs=1).rules} == {None}


def test_sources_are_called_what_was_read() -> None:
    assert report().header.sources == ("orders.raw",)


@pytest.mark.parametrize("options", [{}, {"topic": "orders.raw"}])
def test_sources_of_a_run_that_read_nothing_are_no_placeholders(options: dict[str, str]) -> None:
    source = replace(rule_table().first, topic="${TOPIC}")
    table = judged_table(table=replace(rule_table(), sources={"onprem": source}))
    found = evidence(table)
    idle = replace(found, run=replace(found.run, number=9, options=options))
    if options:
        idle = replace(idle, batches=())
    assert make_report(table, idle, NOON).header.sources == ("orders.raw",)


def test_the_trend_is_bounded() -> None:
    assert len(report(runs=500).trend.points) == 40


def test_a_rule_that_is_gone_is_told_with_its_rows() -> None:
    table = judged_table()
    fewer = replace(table, rules=table.rules[1:])
    made = make_report(fewer, evidence(table), NOON)
    assert any("no_mail, which is no longer declared" in note for note in made.notes)


def test_values_of_sensitive_columns_are_in_no_form_of_the_report() -> None:
    made = report()
    forms = [report_html(made), report_json(made).decode(), report_text(made), repr(made)]
    assert all(CANARY not in form for form in forms)
    assert all(MASK in form for form in forms[:2])


def test_a_key_or_time_that_is_sensitive_is_masked_too() -> None:
    table = rule_table(sensitive=("order_id", "ts"))
    row = replace(failed_row(1, ("no_mail",), "INVALID"), pk=CANARY)
    shown = shown_row(row, table, {}, frozenset({"order_id", "ts"}))
    assert (shown.key, shown.event_time) == (MASK, MASK)
    assert shown.row["order_id"] == MASK


@pytest.mark.parametrize(
    "row",
    [
        f'{{"mail": "{CANARY}"}}',
        f'{{"t1.mail": "{CANARY}"}}',
        f'{{"t1": {{"mail": "{CANARY}"}}}}',
        f'{{"all": [{{"mail": ["{CANARY}"]}}]}}',
        f'"{CANARY}"',
        f"{CANARY} is no JSON",
    ],
)
def test_a_sensitive_value_stays_masked_however_the_row_is_written(row: str) -> None:
    assert CANARY not in str(masked_values(row, frozenset({"mail"})))


class Tags(HTMLParser):
    """What a browser would see: tags with their attributes, and how they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in {"meta", "input", "br", "wbr"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_no_value_becomes_a_tag_and_every_tag_is_closed() -> None:
    page = report_html(report())
    tags = Tags(page)
    assert HOSTILE not in page
    assert not [tag for tag, _ in tags.seen if tag == "img"]
    assert not tags.open


def test_the_page_fetches_nothing_and_runs_only_its_own_lines() -> None:
    page = report_html(report())
    tags = Tags(page).seen
    attributes = {name for _, attrs in tags for name in attrs}
    policies = [a.get("content") or "" for _, a in tags if a.get("http-equiv")]
    assert not attributes & {"src", "href", "style", "onclick", "action"}
    assert "url(" not in page
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policies[0]


def test_a_plot_has_words_for_those_who_cannot_see_it() -> None:
    made = report()
    plots = [attrs for tag, attrs in Tags(report_html(made)).seen if tag == "svg"]
    assert all(attrs.get("role") == "img" and attrs.get("aria-label") for attrs in plots)
    assert "most in run 3" in str(plots[0]["aria-label"])


def test_a_thousand_rules_are_one_foldable_table() -> None:
    made = report(rules=1000)
    page = report_html(made)
    assert "show all 1,004 rules" in page
    assert page.count('<th scope="row">amount_<wbr>is') == 1000
    assert len(report_text(made).splitlines()) < 60
    assert len(json.loads(report_json(made))["rules"]) == 1004


def test_json_holds_all_that_the_page_shows() -> None:
    made = report()
    body = json.loads(report_json(made))
    assert body["schema_version"] == 1
    assert body["adds_up"] is True
    assert body["rules"][0]["name"] == made.rules[0].name
    assert body["header"]["table"] == "orders"
    assert len(body["sample"]["rows"]) == len(made.sample.rows)


def test_an_empty_run_has_a_report() -> None:
    table = judged_table()
    known = evidence(table, runs=1)
    nothing = replace(known, batches=(), counts={}, statuses=(), verdicts=())
    made = make_report(table, nothing, NOON)
    assert (made.judged, made.clean) == (0, 0)
    assert "first" in report_html(made)
    assert "0 rows judged" in report_text(made)


@pytest.mark.parametrize("seed", range(20))
def test_a_spread_sample_is_bounded_and_has_of_every_kind(seed: int) -> None:
    rng = Random(seed)
    kinds = [[(kind, n) for n in range(rng.randint(1, 9))] for kind in range(rng.randint(1, 30))]
    limit = rng.randint(0, 80)
    chosen = spread(kinds, limit)
    assert len(chosen) == min(limit, sum(map(len, kinds)))
    taken = [sum(kind == of for of, _ in chosen) for kind in range(len(kinds))]
    unfilled = [n for n, kind in zip(taken, kinds, strict=True) if n < len(kind)]
    assert not unfilled or max(taken) - min(unfilled) <= 1, f"seed {seed}"


def test_kinds_stand_in_the_order_of_the_rules() -> None:
    rows = [
        failed_row(1, ("b",), "X"),
        failed_row(2, ("a",), "Y"),
        failed_row(3, ("b",), "X"),
        failed_row(4, (), "Z"),
    ]
    assert [row.rules for row in stratified(rows, ("a", "b"))] == [("a",), ("b",), ("b",), ()]


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0%"), (1, "100%"), (0.5, "50.00%"), (0.00001, "<0.01%"), (0.999999, "99.99%")],
)
def test_few_rows_are_told_from_none_and_many_from_all(share: float, words: str) -> None:
    assert percent(share) == words


def test_a_stack_never_leaves_the_plot() -> None:
    bars = [Bar(f"run {n}", 10, {"ERROR": n, "WARN": 10 - n, "INFO": 0}) for n in range(11)]
    assert scale(bars) == 1.0
    drawn = [float(y) for y in re.findall(r' y="([\d.-]+)"', bars_svg(bars, "words"))]
    assert drawn
    assert min(drawn) >= 0


@pytest.mark.parametrize("count", [2, 3, 14, 400])
def test_the_first_and_the_last_bar_stand_over_their_words_at_the_edges(count: int) -> None:
    svg = bars_svg([Bar(f"run {n}", 10, {"ERROR": 5}) for n in range(count)], "words")
    found = re.findall(r' x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', svg)
    places = [(float(x), float(x) + float(width)) for x, width in found]
    assert len(places) == count
    assert (places[0][0], places[-1][1]) == pytest.approx((0, WIDTH), abs=0.02)
    assert all(one[1] < other[0] for one, other in pairwise(places))


def test_what_was_read_is_told_by_partition_or_table() -> None:
    batches = [
        TopicRange("orders", "id", {"0": 10, "1": 0}, {"0": 20, "1": 5}),
        TopicRange("orders", "id", {"0": 20, "1": 5}, {"0": 1_030, "1": 5}),
    ]
    assert range_words(batches) == (
        "orders, partition 0: offsets 10 to 1,030",
        "orders, partition 1: offsets 0 to 5",
    )
    assert range_words([TableRange("b.t", "id", None, 7)]) == ("b.t at snapshot 7",)
    many = TopicRange("t", "id", {}, {str(n): 1 for n in range(50)})
    assert range_words([many])[-1] == "and 44 partitions more"


HIDDEN = frozenset({"mail"})


def verdict(measure: str, group: dict[str, object] | None = None) -> AggregateVerdict:
    return AggregateVerdict("one", measure, 7.0, True, "ERROR", group, min=10)


@pytest.mark.parametrize("measure", ["sum", "quantile", "freshness"])
def test_a_measure_that_can_be_one_rows_value_is_masked(measure: Measure) -> None:
    declared = Aggregate("one", measure, field="mail", quantile=0.5, min=10)
    assert verdict_line(verdict(measure), declared, "w", HIDDEN).value == MASK
    other = replace(declared, field="amount")
    assert verdict_line(verdict(measure), other, "w", HIDDEN).value == "7"


def test_a_group_by_a_sensitive_column_is_masked() -> None:
    declared = Aggregate("one", "row_count", group_by=("mail", "amount"), min=10)
    found = verdict("row_count", {"mail": CANARY, "amount": 5, "state": None})
    line = verdict_line(found, declared, "w", HIDDEN)
    assert line.group == "mail = ***, amount = 5, state is missing"
    assert line.words == "the number of rows per mail and amount"
    assert line.limits == "at least 10"


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "–"), (float("nan"), "nan"), (float("inf"), "inf"), (7.0, "7"), (0.0469, "0.0469"),
     (84_536.91, "84,536.9"), (90_054_800.5, "90,054,800"), (1e20, "1e+20")],
)  # fmt: skip
def test_any_number_has_words(value: float | None, words: str) -> None:
    found = replace(verdict("row_count"), value=value)
    assert verdict_line(found, None, "w", HIDDEN).value == words
