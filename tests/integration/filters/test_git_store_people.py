"""Two people, also through git: whoever wrote a document there may not approve it here."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.api_client import ApiClient
from tests.support.git_store import filter_text
from tests.support.ops_store import create_database

from headgate.api.app import create_app
from headgate.config.settings import Settings
from headgate.core.identity.api_keys import Keys, KeyStore
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.control.reconciler import Reconciler
from headgate.filters.control.service import FilterService
from headgate.filters.git.store import GitStore
from headgate.filters.store.control import ControlStore

FILTERS = "/api/v1/filters"
BOB = ("bob", "bob@corp.com")
# The identities of git that are alice's own, in every way that git writes them.
ALICES = (
    ("alice", "alice@corp.com"),
    ("ALICE", "x@x"),
    ("Alice Smith", "asmith@corp.com"),
    ("Alice Smith", "alice.smith@corp.com"),
    ("Alice Smith", "1234+alice@users.noreply.github.com"),
    ("al\u034fice", "x@x"),
)
STRANGER = ("Nobody Known", "who@elsewhere.example")


class Place:
    """One accepted filter in git, which people then change with git alone."""

    def __init__(self, folder: Path, store: OpsStore) -> None:
        self.git, self.clone = GitStore(folder / "filters.git"), folder / "clone"
        service = FilterService(store, self.git, {})
        self.reconciler = Reconciler(store, self.git, {})
        self.api = ApiClient(create_app(Settings(root=folder), store, service), store, service)
        self.api.create_key("alice", "author", "approver")
        self.api.create_key("bob", "author", "approver")
        self.api.create_key("carol", "author", "approver")
        self.api.create_key("olga", "operator", "author")
        self.api("POST", FILTERS, "bob", json=json.loads(filter_text("base")))
        assert self.approve("carol") == 200
        self.reconciler.step()
        subprocess.run(["git", "clone", "-q", str(self.git.folder), str(self.clone)], check=True)

    def push(
        self,
        author: tuple[str, str],
        committer: tuple[str, str] | None = None,
        message: str = "by hand",
        dealer: str = "DEALER-666",
    ) -> None:
        by = committer or author
        file = self.clone / "schemas" / "v1" / "filters" / "base.json"
        file.write_text(filter_text("base", dealer))
        names = {"GIT_AUTHOR_NAME": author[0], "GIT_AUTHOR_EMAIL": author[1]}
        names |= {"GIT_COMMITTER_NAME": by[0], "GIT_COMMITTER_EMAIL": by[1]}
        for words in (("commit", "-qam", message), ("push", "-q")):
            command = ["git", "-C", str(self.clone), *words]
            subprocess.run(command, check=True, env={**os.environ, **names})

    def mend(self) -> None:
        body = {"side": "store", "filters": ["base"]}
        mended = self.api("POST", "/api/v1/drift:mend", "olga", json=body).json()
        assert (mended["filters"], mended["refused"]) == (["base"], [])

    def approve(self, who: str) -> int:
        revision = self.api("GET", f"{FILTERS}/base", who).json()["revision"]
        answer = self.api("POST", f"{FILTERS}/base/approve", who, json={"revision": revision})
        return answer.status_code

    def declare(self, name: str, identity: str) -> None:
        Keys(self.api.store.part(KeyStore)).add_git_identity(name, identity, "test")


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create_database(tmp_path_factory.mktemp("people") / "ops.db")


@pytest.fixture
def place(tmp_path: Path, blank: Path) -> Iterator[Place]:
    (tmp_path / "ops.db").write_bytes(blank.read_bytes())
    with OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}") as store:
        yield Place(tmp_path, store)


@pytest.mark.parametrize("identity", ALICES, ids=str)
@pytest.mark.parametrize("part", ["author", "committer", "co-author"])
def test_whoever_wrote_in_git_cannot_approve_it(
    place: Place, identity: tuple[str, str], part: str
) -> None:
    """However alice is named, and whether as author, committer or co-author."""
    if part == "author":
        place.push(identity, committer=BOB)
    elif part == "committer":
        place.push(BOB, committer=identity)
    else:
        place.push(BOB, message=f"Change it\n\nco-authored-BY:  {identity[0]} <{identity[1]}>")
    place.mend()
    assert place.approve("alice") == 403
    assert place.approve("bob") == 403
    assert place.approve("olga") == 403


def test_a_third_person_approves_what_known_people_wrote(place: Place) -> None:
    place.declare("alice", "asmith@corp.com")
    place.declare("forge", "noreply@forge.example")
    place.push(("Alice Smith", "ASmith@corp.com"), committer=("Forge", "noreply@forge.example"))
    place.mend()
    assert place.approve("alice") == 403
    assert place.approve("carol") == 200


def test_what_somebody_unknown_wrote_is_approved_by_nobody(place: Place) -> None:
    place.push(STRANGER)
    place.mend()
    assert [place.approve(who) for who in ("alice", "bob", "carol")] == [403, 403, 403]
    refused = [
        one for one in place.api.store.part(ControlStore).audit() if one.action == "approve_refused"
    ]
    assert [(one.actor, one.detail["peer"]) for one in refused] == [
        (name, "127.0.0.1") for name in ("alice", "bob", "carol")
    ]
    place.approve("alice")
    assert place.api.store.part(ControlStore).audit()[-1].seq == refused[-1].seq


def test_it_can_be_approved_once_it_is_known_who_that_is(place: Place) -> None:
    place.push(STRANGER)
    place.mend()
    assert place.approve("carol") == 403
    place.declare("alice", "who@elsewhere.example")
    place.mend()
    assert place.approve("alice") == 403
    assert place.approve("carol") == 200


def test_it_can_be_approved_once_a_known_author_submits_it(place: Place) -> None:
    place.push(STRANGER)
    place.mend()
    etag = place.api("GET", f"{FILTERS}/base", "bob").headers["etag"]
    body = json.loads(filter_text("base", "DEALER-666"))
    headers = {"If-Match": etag}
    answer = place.api("PUT", f"{FILTERS}/base", "bob", headers=headers, json=body)
    assert answer.status_code == 200
    assert place.approve("bob") == 403
    assert place.approve("carol") == 200


def test_who_calls_themselves_headgate_is_unknown(place: Place) -> None:
    place.push(("Headgate", "headgate@headgate.invalid"))
    place.mend()
    assert [place.approve(who) for who in ("alice", "carol")] == [403, 403]


def test_a_commit_that_is_put_back_while_it_is_mended_hides_nobody(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writers are those of the text that is submitted, not of a tip that moved meanwhile."""
    place.push(("alice", "alice@corp.com"))
    history, done = place.git.history, list[str]()

    def moved(*words: object, **more: object) -> object:
        if not done:
            done.append("once")
            place.push(BOB, dealer="DEALER-001")
        return history(*words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(place.git, "history", moved)
    place.mend()
    assert place.approve("alice") == 403


def test_commits_that_go_on_top_of_the_remote_keep_their_people(tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(remote)], check=True)
    here = GitStore(tmp_path / "here.git", remote=str(remote))
    there = GitStore(tmp_path / "there.git", remote=str(remote))
    here.commit("one", "1\n", "ann", "first")
    here.push()
    there.pull()
    there.commit("two", "2\n", "bob", "theirs")
    there.push()
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(here.folder), str(clone)], check=True)
    (clone / "schemas" / "v1" / "filters" / "one.json").write_text("3\n")
    names = {
        "GIT_AUTHOR_NAME": "J\u00f6rg",
        "GIT_AUTHOR_EMAIL": "j@x",
        "GIT_COMMITTER_NAME": "alice",
    }
    names |= {"GIT_COMMITTER_EMAIL": "alice@corp.com", "GIT_AUTHOR_DATE": "@999999999999 +0000"}
    for words in (("commit", "-qam", "mine"), ("push", "-q")):
        environment = {**os.environ, **names}
        subprocess.run(["git", "-C", str(clone), *words], check=True, env=environment)
    here.push()
    newest = here.history("one", 1)[0]
    assert [str(one) for one in newest.writers] == ["J\u00f6rg <j@x>", "alice <alice@corp.com>"]
    assert newest.at is None
    assert here.read("two") == "2\n"
