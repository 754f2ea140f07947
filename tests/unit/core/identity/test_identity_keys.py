"""API keys: shown once, kept as a hash, for some roles, for some time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.support.ops_store import create_database

from headgate.cli.main import cli
from headgate.core.identity.api_keys import Keys, KeyStore, state
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import NotFoundError, UnauthenticatedError, UsageError
from headgate.filters.store.control import ControlStore


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[OpsStore]:
    with OpsStore.open(f"sqlite:///{create_database(tmp_path / 'ops.db')}", clock) as opened:
        yield opened


@pytest.fixture
def keys(store: OpsStore) -> Keys:
    return Keys(store.part(KeyStore))


def test_a_key_gives_the_identity_it_was_made_for(keys: Keys) -> None:
    made = keys.create("ann", ["author", "viewer"], 1, by="local")
    found = keys.identify(made.secret)
    assert (found.name, found.roles, found.key_id) == ("ann", {"author", "viewer"}, made.key.id)


def test_only_the_hash_of_a_key_is_kept(keys: Keys, tmp_path: Path) -> None:
    made = keys.create("ann", ["author"], 1, by="local")
    words = made.secret[16:]
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert made.key.id.encode() in kept
    assert words.encode() not in kept
    assert hashlib.sha256(words.encode()).hexdigest().encode() in kept
    assert made.secret not in repr(made)


def test_two_keys_are_never_alike(keys: Keys) -> None:
    made = {keys.create("ann", ["author"], 1, by="local").secret for _ in range(50)}
    assert len(made) == 50
    assert all(len(secret) == 59 for secret in made)


def test_a_changed_character_anywhere_is_refused(keys: Keys) -> None:
    secret = keys.create("ann", ["author"], 1, by="local").secret
    for at in range(len(secret)):
        other = "a" if secret[at] != "a" else "b"
        with pytest.raises(UnauthenticatedError):
            keys.identify(secret[:at] + other + secret[at + 1 :])


def test_a_key_expires(keys: Keys, clock: Clock) -> None:
    made = keys.create("ann", ["author"], 7, by="local")
    clock.now += timedelta(days=7, seconds=-1)
    keys.identify(made.secret)
    clock.now += timedelta(seconds=1)
    with pytest.raises(UnauthenticatedError, match="does not hold") as refused:
        keys.identify(made.secret)
    assert refused.value.why == "it is expired"


def test_a_revoked_key_is_refused_at_once_and_stays_on_record(keys: Keys, clock: Clock) -> None:
    made = keys.create("ann", ["author"], None, by="local")
    keys.identify(made.secret)
    assert keys.revoke(made.key.id, by="local").revoked_at == clock.now
    with pytest.raises(UnauthenticatedError):
        keys.identify(made.secret)
    clock.now += timedelta(days=1)
    again = keys.revoke(made.key.id, by="local")
    assert again.revoked_at == clock.now - timedelta(days=1)
    assert state(again, clock.now) == "revoked"


def test_an_unknown_key_cannot_be_revoked(keys: Keys) -> None:
    with pytest.raises(NotFoundError):
        keys.revoke("nothing", by="local")


def test_the_last_use_is_noted_but_not_with_every_request(keys: Keys, clock: Clock) -> None:
    made = keys.create("ann", ["author"], None, by="local")
    first = clock.now
    keys.identify(made.secret)
    clock.now += timedelta(seconds=30)
    keys.identify(made.secret)
    assert keys.every()[0].last_used_at == first
    clock.now += timedelta(seconds=31)
    keys.identify(made.secret)
    assert keys.every()[0].last_used_at == clock.now


def test_making_and_revoking_are_in_the_audit_log_without_the_hash(
    keys: Keys, store: OpsStore
) -> None:
    made = keys.create("ann", ["author"], None, by="local:root")
    keys.revoke(made.key.id, by="local:root")
    entries = store.part(ControlStore).audit()
    assert [(e.action, e.actor, e.subject) for e in entries] == [
        ("create_key", "local:root", f"key:{made.key.id}"),
        ("revoke_key", "local:root", f"key:{made.key.id}"),
    ]
    assert made.key.hash not in repr(entries)


@pytest.mark.parametrize(
    ("name", "roles", "days"),
    [
        ("", ["author"], 1),
        ("Ann", ["author"], 1),
        ("ann smith", ["author"], 1),
        ("a" * 101, ["author"], 1),
        ("ann\n", ["author"], 1),
        ("system", ["author"], 1),
        ("nobody", ["author"], 1),
        ("local", ["author"], 1),
        ("ann", [], 1),
        ("ann", ["autor"], 1),
        ("ann", ["author"], 0),
        ("ann", ["author"], -1),
        ("ann", ["author"], float("nan")),
        ("ann", ["author"], 1e9),
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(
    keys: Keys, name: str, roles: list[str], days: float
) -> None:
    with pytest.raises(UsageError):
        keys.create(name, roles, days, by="local")
    assert not keys.any()


def test_a_misspelt_role_gets_a_suggestion(keys: Keys) -> None:
    with pytest.raises(UsageError) as refused:
        keys.create("ann", ["aprover"], 1, by="local")
    assert "approver" in refused.value.fix


@given(words=st.text(max_size=80) | st.from_regex(r"\Ahg_[a-z0-9]{12}_[A-Za-z0-9_-]{43}\Z"))
def test_whatever_is_sent_as_a_key_is_refused_in_the_same_words(words: str) -> None:
    with pytest.raises(UnauthenticatedError) as refused:
        NO_KEYS.identify(words)
    assert words not in refused.value.one_line or len(words) < 4


class _Empty:
    def find(self, id: str) -> None:
        return None


NO_KEYS = Keys(_Empty())  # type: ignore[arg-type]  # a store in which nothing is ever found


def test_an_identity_of_git_is_declared_listed_and_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPS_STORE_URL", f"sqlite:///{tmp_path / 'ops.db'}")
    run = CliRunner().invoke
    assert run(cli, ["keys", "git", "add", "alice", "Alice.Smith@Corp.example"]).exit_code == 0
    assert run(cli, ["keys", "git", "add", "bob", "<alice.smith@corp.example>"]).exit_code == 0
    listed = run(cli, ["-o", "json", "keys", "git", "list"]).output
    assert '"alice.smith@corp.example"' in listed
    assert '"bob"' in listed
    assert "alice\n" not in listed
    assert run(cli, ["keys", "git", "remove", "alice.smith@corp.example"]).exit_code == 0
    again = run(cli, ["keys", "git", "remove", "alice.smith@corp.example"])
    assert isinstance(again.exception, NotFoundError)
    with OpsStore.open(f"sqlite:///{tmp_path / 'ops.db'}") as store:
        actions = [one.action for one in store.part(ControlStore).audit()]
        assert store.part(KeyStore).git_identities() == ()
    assert actions == ["add_git_identity", "add_git_identity", "remove_git_identity"]


@pytest.mark.parametrize(
    ("name", "identity"),
    [("alice", ""), ("alice", "<>"), ("alice", "x" * 201), ("system", "a@x"), ("Alice", "a@x"), ("", "a@x"),
     ("al\u034fice", "a@x"), ("git:x", "a@x")],
)  # fmt: skip
def test_an_identity_of_git_that_makes_no_sense_is_not_declared(
    keys: Keys, name: str, identity: str
) -> None:
    with pytest.raises(UsageError):
        keys.add_git_identity(name, identity, "test")
