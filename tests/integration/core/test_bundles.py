"""Bundles through the real Ivy, from a company repository that is a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.core.runtime.bundles import bundle, locked_bundle
from headgate.errors import OperationError, UnavailableError

FOLDER_SETTINGS = """<ivysettings><settings defaultResolver="own"/><resolvers>
  <filesystem name="own" m2compatible="true">
    <artifact pattern="{repo}/[organisation]/[artifact]-[revision](-[classifier]).[ext]"/>
  </filesystem></resolvers></ivysettings>
"""
AWAY_SETTINGS = """<ivysettings><settings defaultResolver="own"/><resolvers>
  <ibiblio name="own" m2compatible="true" usepoms="false" root="http://127.0.0.1:1/"/>
</resolvers></ivysettings>
"""
FETCH = "from headgate.core.runtime.bundles import bundle; print(len(bundle('kafka')))"


@pytest.fixture
def repository(tmp_path) -> Path:
    """A company repository filled from this user's cache."""
    folder = tmp_path / "repo"
    artifacts = locked_bundle("kafka").artifacts
    for item, jar in zip(artifacts, bundle("kafka"), strict=True):
        target = folder / item.org.replace(".", "/") / jar.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(jar)
    (tmp_path / "settings.xml").write_text(FOLDER_SETTINGS.format(repo=folder))
    return folder


def environ(tmp_path: Path) -> dict[str, str]:
    own = {"HEADGATE_CACHE": str(tmp_path / "cache")}
    return os.environ | own | {"HEADGATE_IVY_SETTINGS": str(tmp_path / "settings.xml")}


def test_two_processes_that_fetch_at_once_both_get_the_bundle(repository, tmp_path):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", FETCH],
            env=environ(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=300) for process in processes]
    assert [out.strip() for out, _ in answers] == ["46", "46"]
    assert sum("fetching" in err for _, err in answers) == 1


def test_a_repository_with_another_content_is_refused(repository, tmp_path):
    (wrong,) = repository.rglob("re2j-*.jar")
    wrong.unlink()
    wrong.write_bytes(b"not that jar")
    with pytest.raises(OperationError) as caught:
        bundle("kafka", environ(tmp_path))
    assert "com.google.re2j:re2j:1.8" in caught.value.why


def test_a_repository_that_is_away_is_one_clear_error(tmp_path):
    (tmp_path / "settings.xml").write_text(AWAY_SETTINGS)
    with pytest.raises(UnavailableError) as caught:
        bundle("kafka", environ(tmp_path))
    assert "refused the connection" in caught.value.why
    assert "HEADGATE_IVY_SETTINGS" in caught.value.fix


def test_settings_that_are_not_there_are_named(tmp_path):
    with pytest.raises(UnavailableError, match="settings file is not there"):
        bundle("kafka", environ(tmp_path))


def test_settings_that_ivy_refuses_are_told_in_its_words(tmp_path):
    broken = FOLDER_SETTINGS.format(repo=tmp_path).replace("m2compatible", "nonsense")
    (tmp_path / "settings.xml").write_text(broken)
    with pytest.raises(UnavailableError) as caught:
        bundle("kafka", environ(tmp_path))
    assert "HEADGATE_IVY_SETTINGS is not valid" in caught.value.why
