"""Dead letters of all jobs: listed, grouped, shown with tagged values masked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.dead_letter_table import DeadLetterRow, settings_at, write_dead_letters

from headgate.config.settings import Settings
from headgate.dead_letters.masking import Hidden, hidden_names, shown
from headgate.dead_letters.service import open_redriving
from headgate.dead_letters.table import FROM_TABLE, SAME_RECORD, Chosen
from headgate.errors import NotFoundError

LETTERS = [
    DeadLetterRow("bronze-orders", "not_json", "orders", 3, b"{", minutes=0),
    DeadLetterRow("quality-orders", "not_json", "orders", 3, b"{", minutes=1),
    DeadLetterRow("bronze-orders", "bad_time", "orders", 4, b'{"ssn": "canary-1"}', minutes=2),
    DeadLetterRow("router-raw", "no_id", "raw", 7, b'{"id": null}', minutes=3),
    DeadLetterRow("quality-table", "dq_range", None, None, b'{"a": 1}', key=None, minutes=4),
    DeadLetterRow("quality-table", "dq_range", None, None, b'{"a": 2}', key=None, minutes=4),
]


@pytest.fixture
def settings(project: Path) -> Settings:
    found = settings_at(project)
    write_dead_letters(found, LETTERS)
    return found


def test_an_empty_project_has_no_dead_letters(project: Path):
    with open_redriving(settings_at(project)) as redriving:
        assert redriving.letters.facts(Chosen(), 10) == []
        assert redriving.letters.groups(Chosen()) == []
        with pytest.raises(NotFoundError):
            redriving.letters.letter("0" * 20)


def test_letters_of_all_jobs_are_listed_newest_first_page_by_page(settings: Settings):
    with open_redriving(settings) as redriving:
        whole = redriving.letters.facts(Chosen(), 100)
        pages = [whole[:2]]
        while len(page := redriving.letters.facts(Chosen(), 2, pages[-1][-1].id)) > 0:
            pages.append(page)
    assert [one for page in pages for one in page] == whole
    assert len({one.id for one in whole}) == len(LETTERS)
    assert [one.job for one in whole[2:]] == [
        "router-raw",
        "bronze-orders",
        "quality-orders",
        "bronze-orders",
    ]


def test_letters_are_chosen_by_job_reason_topic_and_time(settings: Settings):
    with open_redriving(settings) as redriving:
        count = redriving.letters.count
        assert count(Chosen(job="bronze-orders")) == 2
        assert count(Chosen(reason="not_json")) == 2
        assert count(Chosen(topic="raw")) == 1
        moment = redriving.letters.facts(Chosen(topic="raw"), 1)[0].refused_at
        assert count(Chosen(since=moment)) == 3
        assert count(Chosen(until=moment)) == 3
        assert count(Chosen(job="x' OR 'a'='a")) == 0


def test_letters_are_grouped_by_job_reason_and_topic(settings: Settings):
    with open_redriving(settings) as redriving:
        groups = redriving.letters.groups(Chosen())
    assert next((g.job, g.reason_code, g.topic, g.letters) for g in groups) == (
        "quality-table",
        "dq_range",
        None,
        2,
    )
    assert sum(group.letters for group in groups) == len(LETTERS)
    assert groups[0].words == "words for dq_range"


def test_tagged_values_are_masked_and_what_is_no_json_is_masked_whole(settings: Settings):
    hidden = Hidden(frozenset({"ssn"}))
    with open_redriving(settings) as redriving:
        ids = [one.id for one in redriving.letters.facts(Chosen(topic="orders"), 9)]
        letters = redriving.letters.letters(ids)
        views = {i: shown(letters[i], hidden, reveal=False) for i in ids}
    told = json.dumps([view.value for view in views.values()])
    assert "canary" not in told
    assert "********" in told
    assert "1 bytes that are no JSON" in told
    revealed = shown(letters[ids[0]], hidden, reveal=True)
    assert revealed.value == {"ssn": "canary-1"}


def test_values_hidden_inside_a_text_of_json_are_masked_too(settings: Settings):
    write_dead_letters(
        settings,
        [
            DeadLetterRow(
                *("router-raw", "no_id", "raw", 8),
                json.dumps({"header_data": json.dumps({"ssn": "canary-2", "a": 1})}).encode(),
                headers=[("trace", b"canary-3"), ("headgate.redrive.attempt", b"2")],
            )
        ],
    )
    with open_redriving(settings) as redriving:
        facts = redriving.letters.facts(Chosen(topic="raw"), 9, oldest_first=True)[0]
        view = shown(redriving.letters.letter(facts.id), Hidden(frozenset({"ssn"})), reveal=False)
    assert "canary" not in repr(view)
    assert view.attempts == 2


def test_letters_of_the_router_hide_what_speaks_of_people_and_money(settings: Settings):
    header = {"vin": "canary-4", "ownerEmail": "canary-5", "amountPaid": "canary-6", "carId": "C1"}
    value = json.dumps({"id": None, "header_data": json.dumps(header)}).encode()
    write_dead_letters(
        settings, [DeadLetterRow("router-raw", "no_id", "raw", 9, value, minutes=99)]
    )
    with open_redriving(settings) as redriving:
        facts = redriving.letters.facts(Chosen(topic="raw"), 1)[0]
        letter = redriving.letters.letter(facts.id)
    view = shown(letter, Hidden(frozenset()), reveal=False)
    assert "canary" not in repr(view)
    assert "C1" in repr(view)
    assert "canary-4" in repr(shown(letter, Hidden(frozenset()), reveal=True))


def test_a_tagged_key_is_masked(settings: Settings):
    with open_redriving(settings) as redriving:
        facts = redriving.letters.facts(Chosen(topic="orders"), 1)[0]
        letter = redriving.letters.letter(facts.id)
    hidden = Hidden(frozenset({"customer"}), frozenset({"orders"}))
    assert shown(letter, hidden, reveal=False).key == "********"
    assert shown(letter, hidden, reveal=True).key == "k"


def test_a_declaration_that_cannot_be_read_hides_everything(settings: Settings, project: Path):
    (project / "contracts").mkdir()
    (project / "contracts" / "broken.hash.yml").write_text("fields: [{name: ssn, sens")
    hidden = hidden_names(settings)
    with open_redriving(settings) as redriving:
        facts = redriving.letters.facts(Chosen(reason="bad_time"), 1)[0]
        view = shown(redriving.letters.letter(facts.id), hidden, reveal=False)
    assert hidden.everything
    assert (view.key, "canary" in repr(view)) == ("********", False)


def test_every_tagged_column_of_the_shipped_declarations_is_known():
    hidden = hidden_names(settings_at(Path(__file__).parents[3]))
    assert hidden.names


def test_a_plan_sends_each_record_once_and_no_rows_of_tables(settings: Settings):
    with open_redriving(settings) as redriving:
        plan = redriving.plan(Chosen())
    assert plan.topics == {"orders": 2, "raw": 1}
    why = sorted(outcome.why for outcome in plan.skipped)
    assert why == sorted([FROM_TABLE, FROM_TABLE, SAME_RECORD])
    assert not (settings.home / "redrives").exists()
