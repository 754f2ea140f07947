"""What a backfill cannot know: how many rows somebody removed before it came."""

from __future__ import annotations

from tests.support.dataset_events import events
from tests.support.pipeline import Pipeline

from headgate.checks.certificate import Certificate, broken


def counts(certificate: Certificate) -> list[str]:
    """Its broken lines about how many rows there are."""
    return [line for line in broken(certificate) if "ledger" in line]


def test_a_row_that_somebody_removed_is_mended_and_stays_in_the_account(pipeline: Pipeline) -> None:
    pipeline.produce(events(1, 20, days=2))
    pipeline.process("bronze")
    pipeline.process("silver")
    sound = pipeline.silver()
    some = pipeline.select("min(event_id)", f"silver.{pipeline.name}")[0][0]
    pipeline.session.sql(f"DELETE FROM lake.silver.{pipeline.name} WHERE event_id = {some}")
    pipeline.process("backfill", None, **{"from": "2024-01-01", "to": "2024-01-04"})
    assert pipeline.silver() == sound
    assert counts(pipeline.certify()) == [
        f"{pipeline.name}: silver.{pipeline.name} {sound.total()} ≠ ledger {sound.total() + 1}"
        " (-1 in the table)"
    ]
    pipeline.process("silver", form="full")
    assert counts(pipeline.certify()) == []
