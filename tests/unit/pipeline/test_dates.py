"""The dates of a backfill: what a person may write, and how a range keeps them."""

from __future__ import annotations

from datetime import date

import pytest

from headgate.core.ledger.model import JobSpec
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.ranges import BackfillRange, parse_range, stored_range
from headgate.errors import UsageError
from headgate.pipeline.backfill import dates_of
from headgate.pipeline.job_kinds import BackfillRunOptions
from headgate.pipeline.revision import Dates


def test_dates_go_through_a_range_and_options_unchanged(store: OpsStore) -> None:
    for first, last in ((date(2024, 1, 3), date(2024, 1, 5)), (date(1, 1, 1), date(9999, 12, 31))):
        dates = Dates(first, last)
        range_ = BackfillRange("x", "", None, 1, first, last)
        assert dates_of(parse_range(**stored_range(range_))) == dates
        options = BackfillRunOptions(dates=dates)
        run = store.submit(JobSpec(f"backfill-{first}", "backfill", "x", "batch", "r", options))
        assert BackfillRunOptions.of(run) == options


def test_one_day_is_a_range() -> None:
    assert str(Dates.parse("2024-01-03", "2024-01-03")) == "2024-01-03"


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2024-01-05", "2024-01-03", "run backwards: 2024-01-05 is after 2024-01-03"),
        ("2024-02-30", "2024-03-01", "--from 2024-02-30 is no date"),
        ("2024-01-03", "yesterday", "--to yesterday is no date"),
        ("2024-01-03", None, "--to is missing"),
        (None, "2024-01-03", "--from is missing"),
    ],
)
def test_what_is_no_range_of_dates_is_refused(first: str, last: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        Dates.parse(first, last)
    assert refused.value.fix.startswith("--from")
