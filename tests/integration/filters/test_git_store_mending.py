"""Drift mended over the API: git from the store at once, the store from git only by a second person."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import Connection, create_engine
from tests.support.api_client import ApiClient
from tests.support.audit_tampering import (
    cut_off_and_set_the_head,
    delete_everything,
    rewrite_everything,
)
from tests.support.git_store import commit_by_hand, filter_text
from tests.support.ops_store import create_database

from headgate.api.app import create_app
from headgate.cli.main import cli
from headgate.config.settings import Settings
from headgate.core.identity.api_keys import Keys, KeyStore
from headgate.core.identity.audit import verified
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.control.reconciler import Reconciler
from headgate.filters.control.service import FilterService
from headgate.filters.git.store import GitStore
from headgate.filters.store.control import ControlStore

MEND = "/api/v1/drift:mend"


class DriftHarness:
    """Two accepted filters in git, and then somebody edits git by hand."""

    def __init__(self, folder: Path, store: OpsStore) -> None:
        self.git = GitStore(folder / "filters.git")
        service = FilterService(store, self.git, {})
        self.reconciler = Reconciler(store, self.git, {})
        self.api = ApiClient(create_app(Settings(root=folder), store, service), store, service)
        self.api.create_key("ann", "author")
        self.api.create_key("bob", "approver")
        self.api.create_key("olga", "operator", "author")
        Keys(store.part(KeyStore)).add_git_identity("hand", "hand@example.org", "test")
        for name in ("edited", "lost"):
            self.api("POST", "/api/v1/filters", "ann", json=json.loads(filter_text(name)))
            self.approve(name)
        clone = folder / "clone"
        commit_by_hand(self.git.folder, clone, "edited", filter_text("edited", "DEALER-666"))
        commit_by_hand(self.git.folder, clone, "lost", None)
        commit_by_hand(self.git.folder, clone, "foreign", filter_text("foreign"))

    def approve(self, name: str) -> None:
        revision = self.api("GET", f"/api/v1/filters/{name}", "bob").json()["revision"]
        path = f"/api/v1/filters/{name}/approve"
        assert self.api("POST", path, "bob", json={"revision": revision}).status_code == 200
        self.reconciler.step()

    def drift(self) -> dict[str, str]:
        found = self.api("GET", "/api/v1/drift", "ann").json()["drift"]
        return {one["filterId"]: one["kind"] for one in found}

    def status(self, name: str) -> str:
        return str(self.api("GET", f"/api/v1/filters/{name}", "ann").json()["status"])


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[DriftHarness]:
    create_database(tmp_path / "ops.db")
    with OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}") as store:
        yield DriftHarness(tmp_path, store)


def test_drift_is_shown_and_mended_in_git(harness: DriftHarness):
    assert harness.drift() == {
        "edited": "differs",
        "foreign": "only_in_git",
        "lost": "missing_in_git",
    }
    assert harness.api("POST", MEND, "ann", json={"side": "git"}).status_code == 403
    mended = harness.api("POST", MEND, "olga", json={"side": "git"}).json()
    assert (mended["filters"], len(mended["commits"])) == (["edited", "foreign", "lost"], 3)
    assert (mended["left"], harness.drift()) == ([], {})
    assert harness.git.history("edited")[0].author == "olga"
    assert harness.api.store.part(ControlStore).audit()[-1].action == "mend_drift"


def test_what_stands_in_git_alone_waits_for_a_second_person(harness: DriftHarness):
    answer = harness.api(
        "POST", MEND, "olga", json={"side": "store", "filters": ["foreign", "edited"]}
    )
    assert answer.json()["filters"] == ["edited", "foreign"]
    assert harness.status("foreign") == harness.status("edited") == "pending_approval"
    harness.approve("foreign")
    harness.approve("edited")
    assert harness.drift() == {"lost": "missing_in_git"}
    assert "DEALER-666" in (harness.git.read("edited") or "")


def test_whoever_wrote_it_in_git_may_not_approve_it(harness: DriftHarness):
    """The person who commits by hand is known here by the local part of their mail."""
    harness.api.create_key("hand", "approver", "admin")
    harness.api("POST", MEND, "olga", json={"side": "store", "filters": ["edited"]})
    revision = harness.api("GET", "/api/v1/filters/edited", "bob").json()["revision"]
    body = {"revision": revision}
    assert (
        harness.api("POST", "/api/v1/filters/edited/approve", "hand", json=body).status_code == 403
    )
    assert (
        harness.api("POST", "/api/v1/filters/edited/approve", "olga", json=body).status_code == 403
    )
    harness.approve("edited")


def test_somebody_who_may_not_submit_changes_nothing(harness: DriftHarness):
    harness.api.create_key("otto", "operator")
    before = harness.api.store.part(ControlStore).audit_head()
    assert harness.api("POST", MEND, "otto", json={"side": "store"}).status_code == 403
    assert harness.api.store.part(ControlStore).audit_head() == before


def test_a_file_of_another_id_and_a_removed_file_are_not_submitted(
    harness: DriftHarness, tmp_path: Path
):
    commit_by_hand(harness.git.folder, tmp_path / "clone", "two", filter_text("three"))
    mended = harness.api("POST", MEND, "olga", json={"side": "store"}).json()
    assert mended["filters"] == ["edited", "foreign"]
    left = {one["filterId"]: one["kind"] for one in mended["left"]}
    assert (left["two"], left["lost"]) == ("unreadable", "missing_in_git")
    assert harness.api("GET", "/api/v1/filters/three", "ann").status_code == 404


def test_a_file_that_cannot_be_submitted_keeps_no_other_from_it(
    harness: DriftHarness, tmp_path: Path
):
    """Each filter is mended in a transaction of its own, and its reason is its own."""
    wrong = json.loads(filter_text("wrong"))
    many = [{"field": "header_data.a", "operator": "matches", "value": "(?<=x)y"}]
    commit_by_hand(
        harness.git.folder, tmp_path / "clone", "wrong", json.dumps({**wrong, "conditions": many})
    )
    mended = harness.api("POST", MEND, "olga", json={"side": "store"}).json()
    assert mended["filters"] == ["edited", "foreign"]
    assert [one["filterId"] for one in mended["refused"]] == ["wrong"]
    assert "wrong" in {one["filterId"] for one in mended["left"]}


def test_mending_the_store_again_changes_nothing(harness: DriftHarness):
    for _ in range(2):
        mended = harness.api("POST", MEND, "olga", json={"side": "store"}).json()
        assert (mended["filters"], mended["refused"]) == (["edited", "foreign"], [])
    assert harness.api("GET", "/api/v1/filters/foreign", "ann").json()["version"] == 1


@pytest.mark.parametrize(
    "tamper", [delete_everything, cut_off_and_set_the_head, rewrite_everything]
)
def test_a_log_whose_head_was_changed_too_is_found_by_git(
    harness: DriftHarness,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tamper: Callable[[Connection], None],
):
    """Every commit that Headgate made says where the log ended then; the command compares them."""
    harness.api("POST", MEND, "olga", json={"side": "git"})
    store = f"sqlite:///{tmp_path / 'ops.db'}"
    monkeypatch.setenv("OPS_STORE_URL", store)
    monkeypatch.setenv("HEADGATE_HOME", str(tmp_path))
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "filters.git").symlink_to(harness.git.folder)
    sound = CliRunner().invoke(cli, ["audit", "verify"])
    assert (sound.exit_code, "5 commits in git" in sound.output) == (0, True), sound.output
    engine = create_engine(store)
    with engine.begin() as db:
        tamper(db)
    engine.dispose()
    assert verified(*harness.api.store.part(ControlStore).audit_chain()).is_sound
    found = CliRunner().invoke(cli, ["audit", "verify"])
    assert type(found.exception).__name__ == "DifferenceError"
    assert "says that the log had" in vars(found.exception)["why"]


def test_a_broken_repository_is_503_and_tells_no_path(harness: DriftHarness, tmp_path: Path):
    (harness.git.folder / "config").write_text("[core\nbroken")
    for answer in (
        harness.api("GET", "/api/v1/drift", "ann"),
        harness.api("POST", MEND, "olga", json={"side": "git"}),
    ):
        assert (answer.status_code, str(tmp_path) in answer.text) == (503, False)
