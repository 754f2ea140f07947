"""Several processes on one store: nothing is lost, nothing is done twice."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.control_plane import ANN, BOB, filter_document
from tests.support.ops_store import create_database
from tests.support.postgres import create_ops_store

from headgate.core.identity.audit import breaks
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import DuplicateError, IllegalTransitionError, StaleError
from headgate.filters.control.reconciler import Reconciler
from headgate.filters.control.service import FilterService
from headgate.filters.store.control import ControlStore
from headgate.filters.store.routing import RoutingStore
from headgate.filters.targets.deployment import EngineTarget
from headgate.local.postgres import PostgresServer
from headgate.local.service import Running

pytestmark = pytest.mark.integration
WRITERS, ROUNDS = 4, 10


def opened(url: str) -> tuple[OpsStore, FilterService]:
    store = OpsStore.open(url)
    return store, FilterService(store, None, {"engine": EngineTarget(store.part(RoutingStore))})


def edit(url: str, writer: int) -> None:
    """Change the filter so many times, each time from what was read last."""
    store, service = opened(url)
    done = 0
    while done < ROUNDS:
        seen = service.get("one")
        try:
            service.update(ANN, "one", filter_document(value=f"{writer}-{done}"), seen.etag)
            done += 1
        except StaleError:
            continue
    store.close()


def create(url: str, writer: int) -> None:
    store, service = opened(url)
    for n in range(ROUNDS):
        try:
            service.create(ANN, filter_document(f"f{n}", str(writer)))
        except DuplicateError:
            continue
    store.close()


def deploy_and_reconcile(url: str, writer: int) -> None:
    store, service = opened(url)
    reconciler = Reconciler(store, None, service.targets)
    with contextlib.suppress(IllegalTransitionError):
        service.deploy(ANN, "one")
    reconciler.step()
    store.close()


def at_once(what: Callable[[str, int], None], url: str) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=what, args=(url, n)) for n in range(WRITERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=400)
    assert [process.exitcode for process in processes] == [0] * WRITERS


def sqlite_in(folder: Path) -> str:
    return f"sqlite:///{create_database(folder / 'ops.db')}"


def edited_at_once(url: str) -> None:
    store, service = opened(url)
    service.create(ANN, filter_document())
    store.close()
    at_once(edit, url)


def test_no_update_is_lost_among_writers_that_name_what_they_read(tmp_path: Path) -> None:
    edited_at_once(url := sqlite_in(tmp_path))
    store, service = opened(url)
    versions = service.revisions("one")
    written = {version.document["conditions"][0]["value"] for version in versions[1:]}
    assert written == {f"{w}-{n}" for w in range(WRITERS) for n in range(ROUNDS)}
    assert [version.version for version in versions] == list(range(1, WRITERS * ROUNDS + 2))
    assert breaks(*store.part(ControlStore).audit_chain()) == ()
    assert store.part(ControlStore).audit_head().seq == WRITERS * ROUNDS + 1
    store.close()


def test_none_is_lost_on_postgresql_either(postgres: Running[PostgresServer]) -> None:
    url = create_ops_store(postgres.service, "ops_at_once")
    edited_at_once(url)
    store, service = opened(url)
    assert len(service.revisions("one")) == WRITERS * ROUNDS + 1
    assert breaks(*store.part(ControlStore).audit_chain()) == ()
    record = service.get("one")
    service.approve(BOB, "one", record.revision)
    service.deploy(ANN, "one")
    Reconciler(store, None, service.targets).step()
    assert store.part(RoutingStore).wanted_filter("one") is not None
    assert service.list(q="DEALER", status="deploying").total == 0
    assert service.list(q="filter one", status="deploying").total == 1
    store.close()


def test_one_of_many_creates_and_the_others_are_told(tmp_path: Path) -> None:
    at_once(create, url := sqlite_in(tmp_path))
    store, service = opened(url)
    assert [entry.action for entry in service.audit()] == ["create"] * ROUNDS
    assert service.list().total == ROUNDS
    store.close()


def test_one_of_many_deploys(tmp_path: Path) -> None:
    store, service = opened(url := sqlite_in(tmp_path))
    record = service.create(ANN, filter_document())
    service.approve(BOB, "one", record.revision)
    store.close()
    at_once(deploy_and_reconcile, url)
    store, service = opened(url)
    (operation,) = service.operations("one")
    wanted = store.part(RoutingStore).wanted_filter("one")
    assert wanted is not None
    assert wanted.deployment == operation.id
    store.close()
