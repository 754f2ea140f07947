"""Canaries on the command line's screens: what is secret or tagged stands on none of them (N8)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.support.api_server import FILTER, ROLES, RunningApi, run_accepting_router, serve_api
from tests.support.command_line import Shell
from tests.support.dead_letter_table import DeadLetterRow, environ_at, write_dead_letters

from headgate.config.reference import MASK
from headgate.config.settings import load_settings
from headgate.core.kafka.topics import TopicSpec

ROOT = Path(__file__).parents[3]
SOURCE, ID = "screens-events", "screens"
FORMATS = ("text", "json", "yaml", "markdown")
# What each canary was planted in.
SECRET, EVENT, ASKED, LETTER = (f"canary-{n}-5b1d" for n in ("secret", "event", "asked", "letter"))
SECRETS = {
    "POSTGRES_PASSWORD": f"{SECRET}-postgres",
    "MINIO_ROOT_PASSWORD": f"{SECRET}-minio",
    "CONFLUENT_CLOUD_API_SECRET": f"{SECRET}-confluent",
    "CONNECT_TOKEN": f"{SECRET}-connect",
    "SCHEMA_REGISTRY_URL": f"http://someone:{SECRET}@127.0.0.1:9",
}
WANTED: dict[str, Any] = {
    **FILTER,
    "id": ID,
    "source": SOURCE,
    "outputTopic": ID,
    "conditions": [
        {"field": "header_data.dealerId", "operator": "equals", "value": "DEALER-001"},
        {"field": "header_data.vin", "operator": "equals", "value": ASKED},
    ],
}
LETTERS = [
    DeadLetterRow("bronze-orders", "bad", "orders", 1, b'{"col1": "%s"}' % LETTER.encode()),
    DeadLetterRow("bronze-orders", "not_json", "orders", 2, LETTER.encode()),
    DeadLetterRow(
        "router-raw",
        "no_id",
        "raw",
        3,
        json.dumps({"header_data": json.dumps({"ownerName": LETTER})}).encode(),
        headers=[("password", LETTER.encode())],
    ),
]


def event(n: int) -> bytes:
    header = {
        "dealerId": "DEALER-001",
        "vin": ASKED,
        "ownerName": EVENT,
        "note": EVENT,
        "inside": {"amountPaid": EVENT, "list": [EVENT]},
    }
    plain = {"id": f"e{n}", "event_type": "CarServiceDone", "__op": "c", "__ts_ms": n}
    return json.dumps({**plain, "header_data": json.dumps(header)}).encode()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("screens")
    (made / "contracts").mkdir()
    (made / "env").symlink_to(ROOT / "env")
    shipped = (ROOT / "contracts" / "business_table.hash.yml").read_text("utf-8")
    tagged = shipped.replace("name: col1", "name: col1, sensitive: true", 1)
    (made / "contracts" / "own.hash.yml").write_text(tagged)
    for name, changed in (("first", {}), ("second", {"description": "changed"})):
        (made / f"{name}.json").write_text(json.dumps({**WANTED, **changed}))
    return made


@pytest.fixture(scope="module")
def environ(project: Path, broker) -> dict[str, str]:
    broker.topics.create([TopicSpec(SOURCE, partitions=1, retention_days=1)])
    sending = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "log_level": 0})
    for n in range(5):
        sending.produce(SOURCE, event(n))
    assert sending.flush(30) == 0
    return {**environ_at(project, broker.bootstrap), **SECRETS}


@pytest.fixture(scope="module")
def api(project: Path, environ: dict[str, str]) -> Iterator[RunningApi]:
    settings = load_settings(project, environ)
    write_dead_letters(settings, LETTERS)
    with serve_api(settings) as server, run_accepting_router(settings):
        yield server


@pytest.fixture
def shell(
    api: RunningApi,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Shell:
    monkeypatch.chdir(api.settings.root)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    return Shell(api, monkeypatch, capsys)


@pytest.fixture
def made(shell: Shell) -> Shell:
    """Two versions, of which the first runs."""
    if shell("vera", "filters", "get", ID) != 0:
        assert shell("ann", "filters", "create", "first.json") == 0
        assert shell("bob", "filters", "approve", ID, "--yes") == 0
        assert shell("dan", "filters", "deploy", ID) == 0
        assert shell("ann", "filters", "update", "second.json", "--yes") == 0
    return shell


def secrets_of(api: RunningApi) -> list[str]:
    return [SECRET, *api.keys.values(), *(key[16:] for key in api.keys.values())]


@pytest.mark.parametrize("form", FORMATS)
def test_no_screen_shows_a_secret_or_a_value_of_an_event(made: Shell, form: str) -> None:
    asked = [
        ("filters", "list"),
        ("filters", "get", ID),
        ("filters", "status", ID),
        ("filters", "revisions", ID),
        ("filters", "diff", ID),
        ("filters", "ledger", ID),
        ("filters", "generate", ID),
        ("filters", "validate", ID),
        ("filters", "dry-run", ID),
        ("filters", "dry-run", "second.json"),
        ("filters", "watch", "--after", "0", "--for", "0.1"),
        ("filters", "get", "nothing"),
        ("audit", "list"),
        ("audit", "export"),
        ("keys", "list"),
        ("dlq", "list"),
        ("dlq", "groups"),
        ("config", "show"),
    ]
    for words in asked:
        code = made("vera", "-o", form, *words)
        # A viewer's own document may not ask about a masked field.
        refused = "nothing" in words or "second.json" in words
        assert (code == 0) == (not refused), (words, made.err)
        for hidden in (*secrets_of(made.api), EVENT, LETTER):
            assert hidden not in made.out + made.err, words


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_asked_of_a_tagged_field_stands_only_where_the_document_does(
    made: Shell, form: str
) -> None:
    for words in (
        ("filters", "dry-run", ID),
        ("filters", "watch", "--after", "0", "--for", "0.1"),
        ("filters", "status", ID),
        ("filters", "ledger", ID),
        ("audit", "list"),
    ):
        assert made("vera", "-o", form, *words) == 0
        assert ASKED not in made.out + made.err, words
    assert made("vera", "filters", "get", ID, "--document") == 0
    assert ASKED in made.out


def test_a_dry_run_shows_events_with_masks_in_them(made: Shell) -> None:
    assert made("vera", "filters", "dry-run", "second.json") == 7
    assert "header_data.vin" in made.err
    assert made("adam", "-o", "json", "filters", "dry-run", "second.json") == 0
    found = made.json()
    assert (found["events"], found["matched"], found["matchedBefore"]) == (5, 5, 5)
    (made.api.settings.root / "third.json").write_text(json.dumps({**WANTED, "id": "third"}))
    assert made("adam", "-o", "json", "filters", "dry-run", "third.json") == 0
    header = made.json()["samplesAdded"][0]["headerData"]
    assert (header["dealerId"], header["vin"], header["ownerName"]) == ("DEALER-001", MASK, MASK)
    for form in FORMATS:
        assert made("adam", "-o", form, "filters", "dry-run", "third.json") == 0
        assert MASK in made.out
        assert EVENT not in made.out
        assert ASKED not in made.out


def test_a_dead_letter_is_shown_whole_only_to_who_asks_for_it(shell: Shell) -> None:
    assert shell("adam", "-o", "json", "dlq", "list") == 0
    ids = [one["id"] for one in shell.json()["items"]]
    assert len(ids) == len(LETTERS)
    for letter in ids:
        for form in FORMATS:
            assert shell("adam", "-o", form, "dlq", "show", letter) == 0
            assert LETTER not in shell.out + shell.err
            assert MASK in shell.out
        assert shell("adam", "dlq", "show", letter, "--reveal") == 0
        assert LETTER in shell.out


def test_errors_name_no_secret(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = f"hg_0_{SECRET}"
    monkeypatch.setitem(shell.api.keys, "mallory", wrong)
    assert shell("mallory", "filters", "list") == 7
    assert SECRET not in shell.out + shell.err
    for who in ROLES:
        shell(who, "filters", "deploy", "nothing")
        assert not [key for key in secrets_of(shell.api) if key in shell.out + shell.err]
