"""Drift between git and the ops store: found in both directions, shown, and mended either way."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.support.git_store import commit_by_hand, filter_text

from headgate.filters.git import sync as drift_module
from headgate.filters.git.repository import DriftKind, GitIdentity
from headgate.filters.git.store import GitStore
from headgate.filters.git.sync import TOO_MANY, drift_of, restored, writers


def drifted(tmp_path: Path) -> tuple[GitStore, dict[str, str]]:
    store = GitStore(tmp_path / "filters.git")
    accepted = {name: filter_text(name) for name in ("kept", "edited", "lost", "broken")}
    for name, text in accepted.items():
        store.commit(name, text, "alice", "accepted")
    clone = tmp_path / "clone"
    commit_by_hand(store.folder, clone, "edited", filter_text("edited", "DEALER-666"))
    commit_by_hand(store.folder, clone, "lost", None)
    commit_by_hand(store.folder, clone, "foreign", filter_text("foreign"))
    commit_by_hand(store.folder, clone, "broken", "{")
    return store, accepted


def test_drift_is_found_in_both_directions_with_who_made_it(tmp_path: Path):
    store, accepted = drifted(tmp_path)
    found = drift_of(store, accepted)
    assert [(d.filter, d.kind, d.commit and d.commit.author) for d in found] == [
        ("broken", DriftKind.UNREADABLE, "Hand"),
        ("edited", DriftKind.DIFFERS, "Hand"),
        ("foreign", DriftKind.ONLY_IN_GIT, "Hand"),
        ("lost", DriftKind.MISSING_IN_GIT, "Hand"),
    ]
    assert "DEALER-666" in str(found[1].git)


def test_the_layout_of_a_file_is_no_drift(tmp_path: Path):
    store = GitStore(tmp_path / "filters.git")
    text = filter_text("kept")
    store.commit("kept", json.dumps(json.loads(text)), "alice", "accepted")
    assert drift_of(store, {"kept": text}) == ()


def test_git_is_mended_from_the_store(tmp_path: Path):
    store, accepted = drifted(tmp_path)
    restored(store, drift_of(store, accepted), "olga")
    assert drift_of(store, accepted) == ()
    assert store.files() == accepted
    assert [commit.author for commit in store.history("edited")] == ["olga", "Hand", "alice"]


def test_everybody_who_wrote_since_it_was_accepted_is_known(tmp_path: Path):
    store, accepted = drifted(tmp_path)
    found = {drift.filter: drift for drift in drift_of(store, accepted)}
    hand = GitIdentity("Hand", "hand@example.org")
    assert writers(store, found["edited"]) == {hand}
    assert hand in writers(store, found["foreign"])


def test_a_history_that_is_too_long_to_read_has_a_writer_nobody_knows(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(drift_module, "MOST_COMMITS", 2)
    store = GitStore(tmp_path / "filters.git")
    for n in range(3):
        store.commit("one", filter_text("one", f"DEALER-{n}"), f"author{n}", "change")
    [drift] = drift_of(store, {})
    assert TOO_MANY in writers(store, drift)


def test_who_wrote_on_a_side_branch_with_an_old_date_is_known_too(tmp_path: Path):
    store = GitStore(tmp_path / "filters.git")
    store.commit("one", filter_text("one"), "alice", "accepted")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(store.folder), str(clone)], check=True)
    store.commit("one", filter_text("one", "DEALER-002"), "alice", "accepted again")

    def git(*words: str, **environ: str) -> None:
        who = ["-c", "user.name=Mallory", "-c", "user.email=mallory@example.org"]
        subprocess.run(
            ["git", *who, "-C", str(clone), *words],
            check=True,
            capture_output=True,
            env={**os.environ, **environ},
        )

    old = {"GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z"}
    file = clone / "schemas" / "v1" / "filters" / "one.json"
    file.write_text(filter_text("one", "DEALER-666"))
    git("commit", "--quiet", "-am", "long ago", **old)
    git("pull", "--quiet", "--no-rebase", "-X", "ours", "--no-edit")
    git("push", "--quiet")
    [drift] = drift_of(store, {"one": filter_text("one", "DEALER-002")})
    names = {one.name for one in writers(store, drift)}
    assert "Mallory" in names
    assert "alice" not in names


def test_a_file_that_says_it_is_another_filter_is_drift(tmp_path: Path):
    store = GitStore(tmp_path / "filters.git")
    store.commit("one", filter_text("two"), "alice", "accepted")
    found = drift_of(store, {"one": filter_text("one")})
    assert [(d.filter, d.kind) for d in found] == [("one", DriftKind.UNREADABLE)]
