"""The git store: commits with authors, drift, remotes, kills and hostile names."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from headgate.errors import HeadgateError, SettingsError, UnavailableError, UsageError
from headgate.filters.git.store import GitStore

PATH = "schemas/v1/filters/service-by-dealer-001.json"
ID = "service-by-dealer-001"


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def bare(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
    return folder


def test_only_the_owner_may_read_a_store(tmp_path: Path):
    folder = tmp_path / "git" / "filters.git"
    before = os.umask(0o022)
    try:
        GitStore(folder).commit(ID, '{"a": 1}\n', "alice", "Accept revision 1")
    finally:
        os.umask(before)
    made = [folder.parent, folder, *(p for p in folder.rglob("*") if not p.name.endswith(".lock"))]
    open_to_others = [path for path in made if path.stat().st_mode & 0o077]
    assert (len(made) > 10, open_to_others) == (True, [])


def test_an_accepted_revision_is_a_commit_of_its_file_with_its_author(tmp_path: Path):
    store = GitStore(tmp_path / "filters.git")
    commit = store.commit(ID, '{"a": 1}\n', "alice", "Accept revision 1")
    assert git(tmp_path / "filters.git", "show", f"{commit}:{PATH}") == '{"a": 1}'
    told = git(tmp_path / "filters.git", "log", "-1", "--format=%an|%ae|%cn|%s", "main")
    assert told == "alice|alice@headgate.invalid|Headgate|Accept revision 1"
    assert store.files() == {ID: '{"a": 1}\n'}


def test_the_same_text_again_is_the_same_commit(tmp_path: Path):
    store = GitStore(tmp_path / "filters.git")
    first = store.commit(ID, "1\n", "alice", "one")
    store.commit("other", "2\n", "bob", "two")
    assert store.commit(ID, "1\n", "alice", "one") == first
    assert [c.author for c in store.history(ID)] == ["alice"]


def test_going_back_to_an_older_text_is_a_commit_of_its_own(tmp_path: Path):
    store = GitStore(tmp_path / "filters.git")
    for text in ("1\n", "2\n", "1\n"):
        store.commit(ID, text, "alice", text)
    assert len(store.history(ID)) == 3


def test_a_removed_filter_keeps_its_history(tmp_path: Path):
    store = GitStore(tmp_path / "filters.git")
    store.commit(ID, "1\n", "alice", "one")
    gone = store.remove(ID, "bob", "gone")
    assert store.read(ID) is None
    assert [(c.id == gone, c.author) for c in store.history(ID)] == [
        (True, "bob"),
        (False, "alice"),
    ]
    assert store.remove(ID, "bob", "gone") == gone


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "", "A", "a.json", "a\n", "-" * 201, "ä"])
def test_an_id_that_could_name_another_place_is_refused(tmp_path: Path, name: str):
    store = GitStore(tmp_path / "filters.git")
    with pytest.raises(UsageError):
        store.commit(name, "1\n", "alice", "one")


@pytest.mark.parametrize(
    ("author", "shown"),
    [("", "unknown"), ("a\nb <x@y>", "a b x@y"), ("x@y.example", "x@y.example"), ("<>", "unknown")],
)
def test_any_identity_can_be_an_author(tmp_path: Path, author: str, shown: str):
    store = GitStore(tmp_path / "filters.git")
    store.commit(ID, "1\n", author, "--amend\n\nsecond paragraph")
    assert store.history(ID)[0].author == shown


def test_no_hook_runs_and_no_configuration_of_the_user_is_read(tmp_path: Path, monkeypatch):
    home = tmp_path / "home"
    hooks = home / "hooks"
    hooks.mkdir(parents=True)
    for name in ("reference-transaction", "pre-push", "post-update", "pre-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\nexit 1\n")
        (hooks / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[core]\n hooksPath = {hooks}\n[user]\n name = Mallory\n[commit]\n gpgSign = true\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Mallory")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    folder, remote = tmp_path / "filters.git", tmp_path / "remote.git"
    monkeypatch.delenv("GIT_DIR")
    bare(remote)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    store = GitStore(folder, remote=str(remote))
    store.tip()
    (folder / "hooks").mkdir()
    for hook in hooks.iterdir():
        (folder / "hooks" / hook.name).write_bytes(hook.read_bytes())
        (folder / "hooks" / hook.name).chmod(0o755)
    store.commit(ID, "1\n", "alice", "one")
    store.push()
    assert store.history(ID)[0].author == "alice"
    assert not list(tmp_path.glob("ran-*"))
    assert not (tmp_path / "elsewhere").exists()


def test_push_and_pull_meet_in_a_bare_remote(tmp_path: Path):
    remote = bare(tmp_path / "remote.git")
    here = GitStore(tmp_path / "a.git", remote=str(remote))
    there = GitStore(tmp_path / "b.git", remote=str(remote))
    here.commit(ID, "1\n", "alice", "one")
    assert (here.standing().ahead, here.standing().behind) == (1, 0)
    here.push()
    assert there.pull().changed == (ID,)
    assert there.files() == {ID: "1\n"}
    assert (there.standing().ahead, there.standing().behind) == (0, 0)


def test_commits_that_the_remote_lacks_go_on_top_of_its_own(tmp_path: Path):
    remote = bare(tmp_path / "remote.git")
    here = GitStore(tmp_path / "a.git", remote=str(remote))
    there = GitStore(tmp_path / "b.git", remote=str(remote))
    here.commit("first", "1\n", "alice", "one")
    here.push()
    there.commit("second", "2\n", "bob", "two")
    there.commit("first", "3\n", "bob", "three")
    here.commit("first", "4\n", "alice", "four")
    here.push()
    pulled = there.pull()
    assert (pulled.changed, pulled.replayed, pulled.overridden) == (
        ("first", "second"),
        2,
        ("first",),
    )
    there.push()
    here.pull()
    assert here.files() == there.files() == {"first": "3\n", "second": "2\n"}
    assert [(c.author, c.message) for c in here.history("first")] == [
        ("bob", "three"),
        ("alice", "four"),
        ("alice", "one"),
    ]


def test_a_remote_that_is_away_is_said_and_the_commit_waits(tmp_path: Path):
    store = GitStore(tmp_path / "a.git", remote=str(tmp_path / "nowhere"))
    store.commit(ID, "1\n", "alice", "one")
    with pytest.raises(UnavailableError):
        store.push()
    bare(tmp_path / "nowhere")
    store.push()
    assert git(tmp_path / "nowhere", "show", f"main:{PATH}") == "1"


def test_a_password_in_the_remote_is_not_told(tmp_path: Path):
    address = "https://bot:canary-secret@127.0.0.1:9/x.git"
    store = GitStore(tmp_path / "a.git", remote=address)
    store.commit(ID, "1\n", "alice", "one")
    with pytest.raises(HeadgateError) as caught:
        store.push()
    assert "canary-secret" not in caught.value.one_line


@pytest.mark.parametrize("remote", ["--upload-pack=touch x", "ext::sh -c id"])
def test_a_remote_that_would_run_a_program_is_refused(tmp_path: Path, remote: str):
    with pytest.raises(SettingsError):
        GitStore(tmp_path / "a.git", remote=remote).push()


@pytest.mark.parametrize("name", ["refs/heads/main", "HEAD"])
def test_the_lock_of_a_killed_git_is_taken_away_and_a_fresh_one_is_respected(
    tmp_path: Path, name: str
):
    store = GitStore(tmp_path / "a.git")
    store.commit(ID, "1\n", "alice", "one")
    lock = tmp_path / "a.git" / f"{name}.lock"
    lock.touch()
    fresh = time.time() + 600  # however long the tries take
    os.utime(lock, (fresh, fresh))
    with pytest.raises(HeadgateError):
        store.commit(ID, "2\n", "alice", "two")
    old = time.time() - 60
    os.utime(lock, (old, old))
    store.commit(ID, "2\n", "alice", "two")
    assert store.read(ID) == "2\n"


def test_many_processes_commit_and_none_is_lost(tmp_path: Path):
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from headgate.filters.git.store import GitStore
        store = GitStore(Path(sys.argv[1]))
        for at in range(5):
            store.commit(f"filter-{sys.argv[2]}-{at}", "1\\n", sys.argv[2], "one")
    """)
    folder = tmp_path / "a.git"
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(folder), str(n)]) for n in range(4)
    ]
    assert [child.wait(400) for child in children] == [0] * 4
    assert len(GitStore(folder).files()) == 20
    assert git(folder, "rev-list", "--count", "main") == "20"


def test_a_kill_at_any_moment_leaves_a_whole_repository(tmp_path: Path):
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from headgate.filters.git.store import GitStore
        store = GitStore(Path(sys.argv[1]))
        print("ready", flush=True)
        for at in range(1000):
            store.commit("busy", f"{at}\\n", "alice", f"{at}")
            print("committed", flush=True)
    """)
    folder = tmp_path / "a.git"
    for round_ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, process_group=0
        ) as child:
            assert child.stdout is not None
            # The first is killed about its first commit, the others anywhere after one.
            for _ in range(1 if round_ == 0 else 2):
                assert child.stdout.readline()
            time.sleep(0.05 + 0.037 * round_)
            os.killpg(child.pid, signal.SIGKILL)
        for lock in folder.rglob("*.lock"):
            old = time.time() - 60
            os.utime(lock, (old, old))
    store = GitStore(folder)
    store.commit("after", "1\n", "bob", "after")
    git(folder, "fsck", "--strict")
    assert store.read("after") == "1\n"
    assert store.read("busy") is not None


def test_a_remote_that_hangs_keeps_no_commit_waiting(tmp_path: Path):
    """Whoever waits for the remote holds another lock than whoever commits."""
    store = GitStore(tmp_path / "a.git", remote=str(tmp_path / "nowhere"))
    store.commit(ID, "1\n", "alice", "one")
    with (tmp_path / "a.git" / "headgate-remote.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begun = time.monotonic()
        store.commit(ID, "2\n", "alice", "two")  # else it would wait here for ever
        assert time.monotonic() - begun < 10
    assert store.read(ID) == "2\n"
