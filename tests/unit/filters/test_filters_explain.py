"""`headgate filters explain` as a person and a script see it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.support.ledger_rows import intent, ledger_row, topic_range

from headgate.cli.main import cli
from headgate.config.settings import load_settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import DeclarationError, UsageError
from headgate.filters.cli.local import load_compiled
from headgate.filters.loader import filter_files
from headgate.filters.store.model import Member, RoutedBatch, RoutedCount, Seen, Standing
from headgate.filters.store.routed import RoutedRows
from headgate.filters.store.routing import RoutingStore

ROOT = Path(__file__).parents[3]
FILTER = "service-by-dealer-001"


@pytest.fixture(autouse=True)
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "schemas", project / "schemas")
    monkeypatch.chdir(project)


def explain(*arguments: str, form: str = "text") -> str:
    words = ["-o", form, "filters", "explain", *arguments]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def judge(revision: str, start: int, end: int, sent: int) -> None:
    """A settled batch that this revision of the filter judged, which is live from then on."""
    with OpsStore.open(load_settings().ops_store_url) as store:
        set_id = store.part(RoutingStore).keep_set("events", [Member(FILTER, revision, "out")])
        announced = store.begin(intent(topic_range({"0": start}, {"0": end}), (set_id,)))
        counts = (RoutedCount(FILTER, revision, sent),)
        row = ledger_row(announced, routed=end - start)
        store.settle(announced, row, (RoutedRows(RoutedBatch(set_id, counts)),))
        store.part(RoutingStore).see([Seen(FILTER, "events", revision, "d", Standing.LIVE, set_id)])


def test_an_id_and_its_file_are_explained_alike() -> None:
    text = explain(FILTER)
    assert text.startswith(f"{FILTER}: Service Events for Dealer 001\n")
    assert f"  file      schemas/v1/filters/{FILTER}.json" in text
    assert (
        "  matches   when all of these are true:\n              event_type is 'CarServiceDone'"
        in text
    )
    assert "AND `header_data.dealerId` = 'DEALER-001'" in text
    assert explain(f"schemas/v1/filters/{FILTER}.json") == text


def test_without_an_argument_all_filters_are_explained() -> None:
    found = json.loads(explain(form="json"))["filters"]
    assert [one["filter"] for one in found] == [path.stem for path in filter_files(ROOT)]
    assert found[0]["condition"]["parts"][0] == {
        "words": "event_type is 'CarServiceDone'",
        "parts": [],
    }


def test_counts_are_those_of_the_ledger(project: Path) -> None:
    (path, *_) = filter_files(project)
    revision = load_compiled(path).revision
    judge("e" * 64, 0, 10, sent=3)
    judge(revision, 10, 2010, sent=40)
    counts = [line.strip() for line in explain(FILTER).splitlines()[-2:]]
    assert counts == [
        "counts    revision eeeeeeeeeeee: judged 10 records, sent 3",
        f"revision {revision[:12]} (this document, live): judged 2,000 records, sent 40",
    ]
    (explained,) = json.loads(explain(FILTER, form="json"))["filters"]
    assert explained["counts"][1] == {
        "revision": revision,
        "standing": "live",
        "judged": 2000,
        "sent": 40,
        "refused": 0,
    }


def test_a_file_is_explained_without_an_ops_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS_STORE_URL", "sqlite:////dev/null/ops.db")
    done = CliRunner().invoke(cli, ["filters", "explain", FILTER], catch_exceptions=False)
    assert done.exit_code == 0
    assert "event_type is 'CarServiceDone'" in done.stdout
    assert "counts" not in done.stdout
    assert "there are no counts: the ops store cannot be opened" in done.stderr


def test_an_unknown_id_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match="no filter `service-by-dealer-01`") as raised:
        explain("service-by-dealer-01")
    assert raised.value.fix == f"Did you mean `{FILTER}`?"


def test_a_name_with_control_characters_never_reaches_the_terminal(project: Path) -> None:
    folder = project / "schemas/v1/filters"
    document = json.loads((folder / f"{FILTER}.json").read_text())
    odd = folder / "a\x1b[2J\nb.json"
    odd.write_text(json.dumps(document))
    text = explain(str(odd))
    assert "  file      schemas/v1/filters/a\\x1b[2J\\nb.json\n" in text
    odd.write_text(json.dumps({**document, "name": "x\x1b[2J"}))
    with pytest.raises(DeclarationError) as raised:
        explain(str(odd))
    (fault,) = raised.value.faults
    assert fault.field == "/name"
