"""Silver under a new declaration says when bronze still reads under the old one."""

from __future__ import annotations

from headgate.core.ledger.model import JobSpec, RunState
from headgate.core.ledger.ops_store import OpsStore
from headgate.pipeline.silver import bronze_behind


def test_a_stream_of_bronze_under_another_revision_is_named_with_what_to_do(
    store: OpsStore,
) -> None:
    silver = store.submit(JobSpec("silver-x", "silver", "x", "batch", "new"))
    assert bronze_behind(store, silver) == ""
    bronze = store.submit(JobSpec("bronze-x", "bronze", "x", "streaming", "old"))
    assert "headgate job restart bronze-x" in bronze_behind(store, silver)
    store.move(bronze.job, bronze.number, RunState.CANCELED)
    assert bronze_behind(store, silver) == ""
    store.submit(JobSpec("bronze-x", "bronze", "x", "streaming", "new"))
    assert bronze_behind(store, silver) == ""
