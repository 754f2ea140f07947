"""Anybody may commit anything: one odd commit, file or document is a fault of its own, never of all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.support.control_plane import ANN, BOB
from tests.support.git_store import commit_by_hand, filter_text
from tests.support.ops_store import create_database

from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.control.reconciler import Reconciler
from headgate.filters.control.revisions import document_text, drafted
from headgate.filters.control.service import FilterService
from headgate.filters.git import sync as commits
from headgate.filters.git.repository import FOLDER
from headgate.filters.git.store import GitStore
from headgate.filters.git.sync import Side, found, mend, writers
from headgate.filters.store.control import ControlStore
from headgate.web.app_state import Repeated

OLD = b"Latin \xe9"


class Place:
    """Two accepted filters; `odd` gets odd commits, `other` is changed by hand."""

    def __init__(self, folder: Path, store: OpsStore) -> None:
        self.git, self.folder = GitStore(folder / "filters.git"), folder
        self.service = FilterService(store, self.git, {})
        self.reconciler = Reconciler(store, self.git, {})
        for name in ("odd", "other"):
            self.accept(name, "DEALER-001")

    def accept(self, name: str, dealer: str) -> None:
        declared = json.loads(filter_text(name, dealer))
        record = self.service.store.part(ControlStore).filter(name)
        if record is None:
            self.service.create(ANN, declared)
        else:
            self.service.update(ANN, name, declared)
        self.service.approve(BOB, name, self.service.get(name).revision)
        self.reconciler.step()

    def commit_raw(
        self,
        *,
        text: bytes | None = None,
        path: bytes = f"{FOLDER}/odd.json".encode(),
        author: bytes = b"Hand <hand@example.org>",
        date: bytes = b"1700000000 +0000",
        subject: bytes = b"by hand",
    ) -> None:
        """A commit of bytes that `git commit` would refuse or mend, as another program writes it."""
        content = text if text is not None else filter_text("odd", "DEALER-666").encode()
        tip = self._git("rev-parse", "refs/heads/main").strip()
        blob = self._git("hash-object", "-w", "--stdin", given=content).strip()
        index = {"GIT_INDEX_FILE": str(self.folder / "odd-index")}
        self._git("read-tree", tip.decode(), environ=index)
        line = b"100644 %s\t%s\0" % (blob, path)
        self._git("update-index", "-z", "--index-info", given=line, environ=index)
        tree = self._git("write-tree", environ=index).strip()
        who = b"%s %s" % (author, date)
        head = b"tree %s\nparent %s\nauthor %s\ncommitter %s\n\n" % (tree, tip, who, who)
        words = ("hash-object", "-w", "-t", "commit", "--literally", "--stdin")
        made = self._git(*words, given=head + subject + b"\n").strip().decode()
        self._git("update-ref", "refs/heads/main", made)

    def _git(
        self, *words: str, given: bytes = b"", environ: Mapping[str, str] | None = None
    ) -> bytes:
        command = ["git", f"--git-dir={self.git.folder}", *words]
        env = {**os.environ, **(environ or {})}
        return subprocess.run(command, input=given, capture_output=True, env=env, check=True).stdout

    def drift(self) -> dict[str, str]:
        return {one.filter: one.kind.value for one in found(self.service)}


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create_database(tmp_path_factory.mktemp("odd") / "ops.db")


@pytest.fixture
def place(tmp_path: Path, blank: Path) -> Iterator[Place]:
    shutil.copy(blank, tmp_path / "ops.db")
    with OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}") as store:
        yield Place(tmp_path, store)


SUBJECTS = (
    "a\u2028b",
    "a\u2029b",
    "a\x85b",
    "a\x0bb",
    "a\x0cb",
    "a\x1cb",
    "a\rb",
    "",
    "\ufeff",
    "x" * 9000,
)
NAMES = ("a\u0085b", "a\u2028b", "", "\u202ea", "a\tb", "\U0001f600" * 50)
DATES = (
    b"999999999999 +0000",
    b"99999999999999999999999999 +0000",
    b"-1 +0000",
    b"0 +9999",
    b"",
    b"x",
)
# What `commit_raw` is given beside the text.
ODD: dict[str, dict[str, bytes]] = {
    **{f"subject {one[:9]!a}": {"subject": one.encode()} for one in SUBJECTS},
    **{f"name {one[:9]!a}": {"author": f"{one} <m@x>".encode()} for one in NAMES},
    **{f"date {one!r}": {"date": one} for one in DATES},
    "subject in latin-1": {"subject": OLD},
    "name in latin-1": {"author": OLD + b" <m@x>"},
    "no name and no mail": {"author": b"<>"},
    "no brackets": {"author": b"nobody"},
    "co-author in latin-1": {"subject": b"x\n\nCo-authored-by: " + OLD},
    "co-author without mail": {"subject": b"x\n\nCo-authored-by:"},
}


def test_an_odd_commit_blinds_nobody(place: Place, tmp_path: Path):
    commit_by_hand(
        place.git.folder, tmp_path / "clone", "other", filter_text("other", "DEALER-666")
    )
    for number, (kind, odd) in enumerate(ODD.items()):
        place.commit_raw(text=filter_text("odd", f"DEALER-{number}x").encode(), **odd)
        assert place.drift() == {"odd": "differs", "other": "differs"}, kind
        writers(place.git, next(one for one in found(place.service) if one.filter == "odd"))
    mended = mend(place.service, ANN, Side.STORE, ["odd"])
    assert (mended.filters, mended.refused) == (("odd",), ())
    assert mend(place.service, ANN, Side.GIT).filters == ("odd", "other")
    assert place.drift() == {}


def test_an_odd_commit_of_a_text_that_waits_stops_no_commit(place: Place):
    """The text of a version that waits is readable; whoever commits it first is met there."""
    for number, (kind, odd) in enumerate(ODD.items()):
        text = document_text(drafted(json.loads(filter_text("odd", f"DEALER-{number}x"))).content)
        place.commit_raw(text=text.encode(), **odd)
        place.accept("odd", f"DEALER-{number}x")
        assert len(place.git.history("odd", 1000)) == number + 2, "the reconciler met another text"
        assert place.service.store.part(ControlStore).open_errands() == (), kind
    place.accept("other", "DEALER-777")
    assert "DEALER-777" in (place.git.read("other") or "")
    assert place.reconciler.git_trouble() == ""


PATHS = (
    b"\xff.json",
    b"\xe9\xe8.json",
    "\u2028.json".encode(),
    b"a\nb.json",
    b"A.json",
    b"deep/er.json",
)


def test_an_odd_file_name_blinds_nobody(place: Place):
    for name in PATHS:
        place.commit_raw(path=f"{FOLDER}/".encode() + name)
        assert place.drift() == {}, name
    place.commit_raw()
    assert place.drift() == {"odd": "differs"}


DOCUMENTS: tuple[bytes, ...] = (
    b"", b"{", b"\xff\xfe", b"null", b"[]", b"5", b'"x"', b"[" * 100_000, b'{"id":' * 50_000,
    b" " * (2 << 20), b"\0", b"NaN", b'{"id": 1e99999999999999999999}',
    *(json.dumps({**json.loads(filter_text("odd")), field: value}).encode()
      for field in ("status", "version", "createdAt", "approvedBy", "approvedAt", "deployedAt",
                    "deploymentError", "flinkStatementIds", "conditions", "name", "enabled", "source")
      for value in (5, [5], {"a": 5}, "\ud800", 10**400)),
)  # fmt: skip


def test_an_odd_document_blinds_nobody(place: Place, tmp_path: Path):
    """Every one of them is a fault of its own file, while another file's change is seen."""
    commit_by_hand(
        place.git.folder, tmp_path / "clone", "other", filter_text("other", "DEALER-666")
    )
    for text in DOCUMENTS:
        place.commit_raw(text=text)
        seen = place.drift()
        assert seen["other"] == "differs", text[:80]
        assert seen.get("odd") in (None, "unreadable", "differs"), text[:80]
    mended = mend(place.service, ANN, Side.STORE)
    assert "other" in mended.filters


def test_a_commit_that_fails_keeps_only_its_own_filter_waiting(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    committed = place.git.commit

    def commit(filter_id: str, *more: str) -> str:
        if filter_id == "odd":
            raise ValueError("one odd thing")
        return committed(filter_id, *more)

    monkeypatch.setattr(place.git, "commit", commit)
    place.accept("odd", "DEALER-002")
    place.accept("other", "DEALER-003")
    [waiting] = place.service.store.part(ControlStore).open_errands()
    assert (waiting.filter_id, waiting.trouble) == ("odd", "ValueError: one odd thing")
    status = place.service.status("odd")
    assert (status.waiting_commits, status.git_trouble) == (1, "ValueError: one odd thing")
    assert place.reconciler.git_trouble() == "ValueError: one odd thing"
    monkeypatch.setattr(place.git, "commit", committed)
    place.reconciler.step()
    assert place.service.status("odd").waiting_commits == 0


def no_git(place: Place, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    before = os.environ["PATH"]
    monkeypatch.setenv("PATH", "/nowhere")
    return lambda: monkeypatch.setenv("PATH", before)


def broken_config(place: Place, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return spoil(place.git.folder / "config", b"[core\nbroken")


def missing_head(place: Place, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return spoil(place.git.folder / "HEAD", None)


def corrupt_tip(place: Place, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return spoil(place.git.folder / "refs" / "heads" / "main", b"0123456789" * 4 + b"\n")


def spoil(file: Path, content: bytes | None) -> Callable[[], None]:
    before = file.read_bytes()
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    return lambda: (file.write_bytes(before), None)[1]


@pytest.mark.parametrize("spoiled", [no_git, broken_config, missing_head, corrupt_tip])
@pytest.mark.parametrize("waits", [True, False], ids=["a commit waits", "nothing to commit"])
def test_git_that_does_not_work_is_seen_and_goes_on_when_it_does(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    spoiled: Callable[..., Callable[[], None]],
    waits: bool,
):
    monkeypatch.setattr(commits, "CHECK_SECONDS", 0.0)
    mended = spoiled(place, monkeypatch)
    if waits:
        place.accept("odd", "DEALER-002")
    place.reconciler.step()
    assert place.reconciler.git_trouble()
    assert str(place.git.folder) not in place.reconciler.git_trouble()
    if waits:
        assert place.service.status("odd").git_trouble
    mended()
    place.reconciler.step()
    assert place.reconciler.git_trouble() == ""
    assert place.service.status("odd").waiting_commits == 0


def test_a_repository_that_is_deleted_is_made_anew_while_it_runs(place: Place):
    shutil.rmtree(place.git.folder)
    place.accept("odd", "DEALER-002")
    assert "DEALER-002" in (place.git.read("odd") or "")
    assert place.drift() == {"other": "missing_in_git"}
    shutil.rmtree(place.git.folder)
    place.git.folder.mkdir()
    (place.git.folder / "headgate.lock").touch()
    place.accept("other", "DEALER-002")
    assert "DEALER-002" in (place.git.read("other") or "")


def test_the_log_says_when_a_step_begins_to_fail_and_when_it_works_again(
    caplog: pytest.LogCaptureFixture,
):
    reasons = iter(["git is away", "git is away", ""])

    def step() -> None:
        if reason := next(reasons):
            raise OSError(reason)

    caplog.set_level("WARNING", logger="headgate.api")
    repeated = Repeated("reconciler", 1, step)
    for _ in range(3):
        repeated._take()
    told = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert told == ["reconciler: OSError: git is away", "reconciler: works again"]


def test_a_token_of_the_remote_stands_in_no_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The git on the path writes down its arguments and its configuration, then fails as a remote does."""
    real = shutil.which("git")
    tools, seen = tmp_path / "bin", tmp_path / "seen"
    tools.mkdir()
    (tools / "git").write_text(
        f'#!/bin/sh\necho "$@" >> {seen}\necho "$GIT_CONFIG_KEY_0=$GIT_CONFIG_VALUE_0" >> {seen}.env\n'
        f'case " $* " in *" ls-remote "*|*" push "*|*" fetch "*) echo no >&2; exit 128;; esac\n'
        f'exec {real} "$@"\n'
    )
    (tools / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    for address in (
        "https://user:t0ps3cret@127.0.0.1:1/x.git",
        "https://t0ps3cret@127.0.0.1:1/x.git",
    ):
        store = GitStore(tmp_path / "filters.git", remote=address)
        store.commit("one", "1\n", "ann", "first")
        for api in (store.push, store.pull, store.standing):
            with pytest.raises(Exception, match="cannot be reached") as refused:
                api()
            assert "t0ps3cret" not in str(vars(refused.value))
    assert "ls-remote -- https://127.0.0.1:1/x.git" in seen.read_text()
    assert "t0ps3cret" not in seen.read_text()
    assert (
        "http.https://127.0.0.1:1/x.git.extraHeader=Authorization: Basic dXNlcjp0MHBzM2NyZXQ="
        in (tmp_path / "seen.env").read_text()
    )
