"""Rules that the values of a file suggest: valid as they stand, measured, and silent about people."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fixtures import make_parquet
from tests.support import parquet_files
from tests.support.nycflights import write_nycflights_table

from headgate.errors import UsageError
from headgate.quality.compile.resolve import JudgedTable, load_judged
from headgate.quality.suggest.proposals import Suggested, Suggestion, rounded_up
from headgate.quality.suggest.rule_set import suggested_text
from headgate.quality.suggest.survey import UUID, RuleWishes, form_of, suggest

ROWS = 2_000
CANARY = "canary-7f3a"


def of(file: Path, **wishes: object) -> Suggested:
    return suggest(RuleWishes("looked", file, "looked.events", **wishes))  # type: ignore[arg-type]


def checked(found: Suggested, folder: Path) -> JudgedTable:
    """What `rules check` would do with the text."""
    path = folder / "looked.yml"
    path.write_text(suggested_text(found))
    judged = load_judged(path, {})
    assert not [note for note in judged.notes if "decides nothing" in note.what]
    return judged.tables[0]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Orders with a few faults in them: 20 amounts below zero, 10 deliveries before the order."""
    rng, start = Random(7), datetime(2024, 3, 1)
    placed = [start + timedelta(minutes=n) for n in range(ROWS)]
    columns = {
        "order_no": [f"SO-{n:06d}" for n in range(ROWS)],
        "customer_email": [f"{CANARY}-{n}@example.org" for n in range(ROWS)],
        "amount": [-5.0 if n % 100 == 0 else rng.uniform(1, 80) for n in range(ROWS)],
        "state": [rng.choice(["new", "paid", "sent"]) for _ in range(ROWS)],
        "coupon": [None if n % 4 == 0 else f"C{rng.randint(0, 9999):04d}" for n in range(ROWS)],
        "placed_at": placed,
        "delivered_at": [
            t - timedelta(hours=1) if n % 200 == 0 else t + timedelta(hours=5)
            for n, t in enumerate(placed)
        ],
        "remark": [
            rng.choice(["", "a b", "Ünïcode", "x" * rng.randint(1, 90)]) for _ in range(ROWS)
        ],
    }
    file = tmp_path_factory.mktemp("shop") / "shop.parquet"
    pq.write_table(pa.table(columns), file)
    return file


@pytest.fixture(scope="module")
def found(shop: Path) -> Suggested:
    return of(shop)


def named(found: Suggested) -> dict[str, Suggestion]:
    return {one.name: one for one in found.found}


def test_what_is_suggested_is_a_rule_set_without_faults(found: Suggested, tmp_path: Path) -> None:
    judged = checked(found, tmp_path)
    names = {rule.name for rule in judged.rules}
    assert names >= {
        "time_missing",
        "field_missing",
        "seen_before",
        "amount_out_of_range",
        "state_unknown",
        "order_no_malformed",
        "delivered_at_before_placed_at",
        "placed_at_in_the_future",
    }
    assert judged.table.pk == "order_no"
    assert judged.table.first.event_time == "placed_at"
    assert {a.name for a in judged.aggregates} == {"coupon_often_missing"}


def test_each_suggestion_says_how_many_rows_it_would_flag(found: Suggested) -> None:
    rows = {name: one.rows for name, one in named(found).items()}
    assert rows["amount_out_of_range"] == 20
    assert rows["delivered_at_before_placed_at"] == 10
    assert rows["state_unknown"] == 0
    assert rows["seen_before"] == 0
    text = suggested_text(found)
    assert "It would flag 20 of 2,000 rows (1%)." in text
    assert "It would flag none of 2,000 rows." in text


def test_the_limits_leave_room_and_the_values_are_those_seen(found: Suggested) -> None:
    settings = {name: one.settings for name, one in named(found).items()}
    assert settings["amount_out_of_range"]["min"] == 0
    assert settings["amount_out_of_range"]["max"] == 200
    assert settings["state_unknown"]["values"] == ("new", "paid", "sent")
    assert settings["order_no_malformed"]["pattern"] == "^[A-Z]{2}\\-[0-9]{6}$"
    assert settings["coupon_often_missing"]["max"] == 0.5


def test_what_only_a_stream_can_tell_is_there_as_a_comment(
    found: Suggested, tmp_path: Path
) -> None:
    off = [one for one in found.found if one.off]
    assert {one.name for one in off} == {
        "placed_at_too_old",
        "placed_at_stands_still",
        "fields_changed",
        "few_rows",
    }
    text = suggested_text(found)
    on = "\n".join(
        line.replace("      # ", "      ", 1) if _is_off(line) else line
        for line in text.splitlines()
    )
    path = tmp_path / "on.yml"
    path.write_text(on)
    judged = load_judged(path, {}).tables[0]
    assert {rule.name for rule in judged.rules} > {"placed_at_too_old"}
    assert {one.name for one in judged.aggregates} > {"placed_at_stands_still", "few_rows"}


def _is_off(line: str) -> bool:
    return line.startswith(("      # - ", "      #   "))


def test_no_value_of_a_column_that_looks_personal_is_written(
    found: Suggested, tmp_path: Path
) -> None:
    assert found.place.sensitive == {"customer_email"}
    assert CANARY not in suggested_text(found)
    assert checked(found, tmp_path).table.first.sensitive == {"customer_email"}


def test_no_value_of_a_column_named_sensitive_is_written(shop: Path) -> None:
    found = of(shop, sensitive=("state", "order_no", "placed_at", "delivered_at"))
    text = suggested_text(found)
    assert not any(value in text for value in ("paid", "SO-", "2024-03-0"))
    assert "state_unknown" not in named(found)
    assert "placed_at_too_old" in named(found)
    assert "placed_at_stands_still" not in named(found)


def test_an_unknown_sensitive_column_is_refused_with_a_suggestion(shop: Path) -> None:
    with pytest.raises(UsageError, match="no column `stat`") as caught:
        of(shop, sensitive=("stat",))
    assert "state" in caught.value.fix


@pytest.mark.parametrize("table", ["weather", "airlines"])
def test_real_tables_give_valid_rules(table: str, tmp_path: Path) -> None:
    file = write_nycflights_table(table, tmp_path / f"{table}.parquet")
    assert checked(of(file), tmp_path).rules


def test_a_share_that_is_often_missing_has_a_limit_that_can_be_passed(tmp_path: Path) -> None:
    values = [None if n % 2 else n for n in range(ROWS)]
    file = tmp_path / "half.parquet"
    pq.write_table(pa.table({"no": list(range(ROWS)), "half": values}), file)
    (limit,) = [a.max for a in checked(of(file), tmp_path).aggregates]
    assert limit == 0.9


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def test_no_rule_asks_for_the_key(found: Suggested) -> None:
    asked = [one.settings for one in found.found if one.settings.get("type") == "required"]
    assert asked
    named = [name for s in asked for name in (s.get("field"), *_list(s.get("fields")))]
    assert found.place.pk not in named


def test_the_trips_give_valid_rules(tmp_path: Path) -> None:
    trips = make_parquet.make(tmp_path / "trips.parquet")
    assert len(checked(of(trips), tmp_path).rules) > 5


@pytest.mark.parametrize("rows", [0, 1, 300])
def test_a_file_of_every_kind_gives_valid_rules(rows: int, tmp_path: Path) -> None:
    file = parquet_files.write_parquet(tmp_path / "kinds.parquet", parquet_files.every_kind(rows))
    # A file without rows tells nothing of which a rule could be made.
    assert bool(checked(of(file), tmp_path).rules) == (rows > 0)


def test_the_same_file_gives_the_same_text(found: Suggested, shop: Path) -> None:
    assert suggested_text(of(shop)) == suggested_text(found)


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        ([f"AB{n:03d}" for n in range(50)], "[A-Z]{2}[0-9]{3}"),
        ([f"{n}" for n in range(50)], "[0-9]{1,2}"),
        ([f"{n:08x}-1234-abcd-0000-{n:012x}" for n in range(50)], UUID),
        ([f"{n * 7919:064x}" for n in range(1, 60)], "[0-9a-f]{64}"),
        (["free text", "Another!", *["x"] * 40], None),
        (["same"] * 10, None),
    ],
)
def test_texts_of_one_form_give_a_pattern_that_they_match(
    texts: list[str], form: str | None
) -> None:
    assert form_of(texts) == form


@pytest.mark.parametrize(
    ("value", "limit"), [(0, 0), (1, 1), (1.2, 2), (4.1, 5), (51, 100), (0.03, 0.05), (999, 1000)]
)
def test_a_limit_is_a_round_number_not_below_the_value(value: float, limit: float) -> None:
    assert rounded_up(value) == pytest.approx(limit)
