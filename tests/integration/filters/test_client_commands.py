"""`headgate filters` and `headgate keys` against a real server, as a person and a script see them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import FILTER, RunningApi, run_accepting_router, run_api
from tests.support.command_line import Shell

from headgate.core.runtime.ports import any_port
from headgate.filters.loader import parse_filter
from headgate.filters.spec import revision_of
from headgate.local.process import wait_until

ID = FILTER["id"]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    with (
        run_api(tmp_path_factory.mktemp("commands")) as server,
        run_accepting_router(server.settings),
    ):
        yield server


@pytest.fixture
def shell(
    api: RunningApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    (api.settings.root / "datasets").mkdir(exist_ok=True)  # makes it the folder of a project
    monkeypatch.chdir(api.settings.root)
    return Shell(api, monkeypatch, capsys)


def file_of(folder: Path, **other: Any) -> str:
    made = {**FILTER, **other}
    path = folder / f"{made['id']}.json"
    path.write_text(json.dumps(made, indent=2))
    return str(path)


def test_the_server_of_this_home_is_found_by_itself(shell: Shell) -> None:
    assert shell("vera", "filters", "list") == 0
    assert shell.err == ""


def test_a_filter_goes_the_whole_way_by_commands(shell: Shell, tmp_path: Path) -> None:
    file = file_of(tmp_path)
    assert shell("vera", "filters", "validate", file) == 0
    assert shell("ann", "filters", "create", file) == 0
    assert "waits for approval" in shell.err
    assert shell("bob", "filters", "generate", ID) == 0
    assert "INSERT" in shell.out
    assert shell("bob", "filters", "approve", ID, "--yes", "--comment", "fine") == 0
    assert '"operator": "equals"' in shell.err
    assert shell("dan", "filters", "deploy", ID) == 0
    assert "is done" in shell.err
    assert shell("vera", "filters", "status", ID) == 0
    assert "deployed" in shell.out
    assert "0:7" in shell.out
    changed = file_of(tmp_path, description="changed")
    assert shell("ann", "-o", "json", "filters", "update", changed, "--yes") == 0
    assert shell.json()["version"] == 2
    assert "replaces version 1 by ann" in shell.err
    assert shell("vera", "filters", "diff", ID) == 0
    assert '+  "description": "changed",' in shell.out
    assert shell("bob", "filters", "approve", ID) == 2
    assert '+  "description": "changed",' in shell.err
    assert shell("bob", "filters", "reject", ID, "--reason", "not now") == 0
    assert shell("dan", "filters", "pause", ID) == 0
    assert shell("vera", "filters", "revisions", ID) == 0
    assert shell.out.splitlines()[1].startswith("1 ")
    assert shell("vera", "filters", "ledger", ID) == 0
    assert shell("vera", "filters", "get", ID) == 0
    assert "paused" in shell.out
    assert shell("vera", "filters", "dry-run", ID) == 0
    assert "no event was looked at" in shell.err

    def watched() -> list[str]:
        assert shell("vera", "filters", "watch", ID, "--after", "0", "--for", "1") == 0
        return [line.split()[4] for line in shell.out.splitlines()]

    # A server that gets to it only after that second has nothing left to tell.
    assert wait_until(lambda: watched()[:3] == ["create", "approve", "deploy"], 60)


def test_no_script_replaces_a_version_that_it_has_not_seen(shell: Shell, tmp_path: Path) -> None:
    named = {"id": "unseen", "outputTopic": "unseen"}
    assert shell("ann", "filters", "create", file_of(tmp_path, **named)) == 0
    mine = file_of(tmp_path, **named, description="mine")
    assert shell("ann", "filters", "update", mine) == 2
    assert "replacing a version needs --if-match, --yes" in shell.err
    assert shell("vera", "-o", "json", "filters", "get", "unseen") == 0
    tag, description = shell.json()["etag"], shell.json()["description"]
    assert description == ""
    assert shell("ann", "filters", "update", mine, "--if-match", tag) == 0
    assert shell("vera", "filters", "get", "unseen") == 0
    assert tag not in shell.out
    theirs = file_of(tmp_path, **named, description="theirs")
    assert shell("adam", "filters", "update", theirs, "--if-match", tag) == 6
    assert shell("adam", "filters", "update", theirs, "--yes") == 0
    assert "replaces version 2 by ann" in shell.err


def test_a_file_that_names_its_version_replaces_no_newer_one(shell: Shell, tmp_path: Path) -> None:
    named = {"id": "based", "outputTopic": "based"}
    assert shell("ann", "filters", "create", file_of(tmp_path, **named)) == 0
    assert shell("ann", "filters", "get", "based", "--document") == 0
    document = json.loads(shell.out)
    assert document["version"] == 1
    assert revision_of(parse_filter(document)) == revision_of(parse_filter({**FILTER, **named}))
    assert (
        shell("adam", "filters", "update", file_of(tmp_path, **named, name="Of adam"), "--yes") == 0
    )
    exported = tmp_path / "exported.json"
    exported.write_text(json.dumps({**document, "description": "of ann"}))
    for more in ((), ("--yes",)):
        assert shell("ann", "filters", "update", str(exported), *more) == 6
        assert "was made from version 1" in shell.err
        assert "version 2 by adam has come since" in shell.err
    assert shell("ann", "filters", "get", "based", "--document") == 0
    exported.write_text(json.dumps({**json.loads(shell.out), "description": "of ann"}))
    assert shell("ann", "filters", "update", str(exported)) == 0
    assert shell("vera", "-o", "json", "filters", "get", "based") == 0
    now = shell.json()
    assert (now["version"], now["name"], now["description"]) == (3, "Of adam", "of ann")


def test_json_is_the_models_of_the_api(shell: Shell, tmp_path: Path) -> None:
    shell("ann", "filters", "create", file_of(tmp_path, id="as-json", outputTopic="as-json"))
    assert shell("vera", "-o", "json", "filters", "list", "--words", "as-json") == 0
    assert shell.json()["schema_version"] == 1
    (one,) = shell.json()["filters"]
    assert (one["consumerId"], one["status"]) == (FILTER["consumerId"], "pending_approval")
    assert shell("vera", "-o", "json", "filters", "get", "as-json") == 0
    assert shell.json()["revision"] == one["revision"]


def test_exit_codes_say_what_kind_of_failure_it_was(shell: Shell, tmp_path: Path) -> None:
    file = file_of(tmp_path, id="codes", outputTopic="codes")
    assert shell("ann", "filters", "create", file) == 0
    assert shell("ann", "filters", "create", file) == 6
    assert shell("dan", "filters", "deploy", "codes") == 6
    assert shell("ann", "filters", "update", file, "--if-match", "another") == 6
    assert shell("vera", "filters", "create", file) == 7
    assert shell(None, "filters", "list") == 7
    assert "headgate keys create" in shell.err
    assert shell("ann", "filters", "get", "nothing") == 1
    assert shell("ann", "filters", "delete", "codes") == 2
    assert shell("ann", "filters", "delete", "codes", "--yes") == 0
    bad = file_of(tmp_path, id="bad", conditions=[], consumerid="x")
    assert shell("ann", "filters", "create", bad) == 3
    assert "/consumerid" in shell.err
    assert f"{bad}:" in shell.err


def test_a_server_that_is_away_is_8(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_API_URL", f"http://127.0.0.1:{any_port()}")
    assert shell("vera", "filters", "list") == 8
    assert "headgate serve" in shell.err


def test_keys_are_made_listed_and_revoked_beside_the_server(shell: Shell) -> None:
    assert shell(None, "keys", "create", "eve", "--role", "viewer", "--days", "1") == 0
    secret = shell.out.strip()
    assert "not shown again" in shell.err
    shell.api.keys["eve"] = secret
    assert shell("eve", "filters", "list") == 0
    assert shell(None, "-o", "json", "keys", "list") == 0
    assert secret not in shell.out
    (eve,) = (key for key in shell.json()["keys"] if key["name"] == "eve")
    assert (eve["roles"], eve["state"]) == (["viewer"], "active")
    assert eve["last_used_at"] is not None
    assert shell(None, "keys", "revoke", eve["id"]) == 0
    assert shell("eve", "filters", "list") == 7
    assert "revoked" in shell.err
    assert secret not in shell.err
    assert shell(None, "keys", "revoke", "nothing") == 1
    assert shell(None, "keys", "create", "eve", "--role", "king") == 2


def test_help_has_examples_for_every_verb() -> None:
    import click

    from headgate.filters.cli.group import VERBS, group

    for verb in VERBS:
        command = group.get_command(click.Context(group), verb)
        assert command is not None, verb
        assert "Examples:" in (command.help or ""), verb
        assert f"headgate filters {verb}" in (command.help or ""), verb
