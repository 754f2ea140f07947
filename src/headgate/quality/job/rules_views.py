"""The permanent views of deployed rule tables, for an engine to keep."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession

from headgate.config.settings import Settings
from headgate.core.lake.views import Views
from headgate.core.ledger.ops_store import OpsStore
from headgate.quality.revision import Revisions, deployed_mark


@contextmanager
def kept_views(session: SparkSession, store: OpsStore, settings: Settings) -> Generator[None]:
    """The views of all that is deployed, as long as the engine is there."""
    views = views_of(session, store, settings)
    views.start()
    try:
        yield
    finally:
        views.stop()


def views_of(session: SparkSession, store: OpsStore, settings: Settings) -> Views:
    """The tables that views read are made with them: a view can be listed before the first batch."""
    revisions = Revisions(store, settings)
    prefix = deployed_mark("")

    def deployed() -> Mapping[str, str]:
        return {name: f"{mark.value} {mark.at}" for name, mark in store.marks(prefix).items()}

    def statements(name: str) -> Sequence[str]:
        found = store.read_mark(name)
        if found is None:
            return ()
        rules = revisions.of(found.value)
        return (*rules.tables(), *rules.permanent_views(revisions.script(found.value)))

    return Views(session, deployed, statements)
