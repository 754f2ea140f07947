"""`headgate demo filters` on real parts: every event where its filter says, and the ledger's proof of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.project_clone import SECONDS, ProjectClone, clone_project

EVENTS, SEED = 90, 5
HOME = ".headgate/demo-filters"
FILTERS = [f"service-by-dealer-00{n}" for n in (1, 2, 3)]


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProjectClone]:
    with clone_project(tmp_path_factory.mktemp("demo"), HOME) as found:
        yield found


@pytest.fixture(scope="module")
def demo(newcomer: ProjectClone) -> dict[str, Any]:
    print(f"seed {SEED}")
    words = ("-o", "json", "demo", "filters", "--events", str(EVENTS), "--seed", str(SEED))
    done = subprocess.run(
        [newcomer.root / ".venv/bin/headgate", *words],
        cwd=newcomer.root,
        env=newcomer.environ,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return json.loads(done.stdout)


@pytest.mark.slow
def test_each_dealer_gets_exactly_its_own(demo: dict[str, Any]) -> None:
    assert demo["holds"]
    assert [proof["filter"] for proof in demo["proofs"]] == FILTERS
    for proof in demo["proofs"]:
        counts = proof["counts"]
        assert counts["expected"] == counts["ledger"] == counts["topic"] == counts["consumer"] > 0
        assert (proof["missing"], proof["unexpected"]) == ([], [])


@pytest.mark.slow
def test_every_offset_was_judged_once_by_a_revision_that_is_known(demo: dict[str, Any]) -> None:
    """Update, rollback and pause are cuts in the lanes of a filter, and no gaps."""
    for proof in demo["proofs"]:
        for lane in proof["lanes"]:
            stretches = lane["stretches"]
            ends = [stretch["end"] for stretch in stretches]
            assert [stretch["start"] for stretch in stretches] == [0, *ends[:-1]]
            assert ends[-1] == lane["end"]
    first, _, third = demo["proofs"]
    versions = {s["version"] for lane in first["lanes"] for s in lane["stretches"]}
    assert versions == {"v1", "v2"}
    assert any(s["replayed"] for lane in third["lanes"] for s in lane["stretches"])


@pytest.mark.slow
def test_every_record_that_was_read_has_one_outcome(demo: dict[str, Any]) -> None:
    assert sum(demo["outcomes"].values()) == EVENTS + 3 + 3 * 60


@pytest.mark.slow
def test_every_accepted_filter_is_a_commit_by_its_author(
    demo: dict[str, Any], newcomer: ProjectClone
) -> None:
    folder = Path(demo["home"]) / "git" / "filters.git"
    told = subprocess.run(
        ["git", "-C", str(folder), "log", "--format=%an", "--name-only", "main"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert {f"schemas/v1/filters/{name}.json" for name in FILTERS} <= set(told.split())
    assert "ana" in told.split()


@pytest.mark.slow
def test_nobody_s_key_stands_in_a_log(demo: dict[str, Any]) -> None:
    for log in (Path(demo["home"]) / "logs").rglob("*.log"):
        assert "hg_" not in log.read_text("utf-8", errors="replace"), log.name
