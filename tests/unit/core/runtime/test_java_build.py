"""Java builds: made once, by one process, whole or not at all; the jar of the Spark functions has its place."""

from __future__ import annotations

import os
import re
import zipfile
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest

from headgate.config.settings import Settings
from headgate.core.engine.spark_options import catalog_options
from headgate.core.runtime import java_build
from headgate.core.runtime import java_build as spark_functions
from headgate.core.runtime.java_build import (
    KEPT,
    build_once,
    functions_jar_place,
    functions_sources,
    hash_files,
    read_classes,
    write_jar,
)

ROOT = Path(__file__).parents[4]
POM = "{http://maven.apache.org/POM/4.0.0}"


def fill(classes: Path, result: Path) -> None:
    classes.mkdir()
    (classes / "A.class").write_bytes(b"class")
    write_jar(result / "a.jar", read_classes(classes))


def test_a_build_is_made_once_and_keeps_no_classes(tmp_path: Path) -> None:
    place = tmp_path / "builds" / "key"
    assert build_once(place, fill)
    assert not build_once(place, lambda *_: pytest.fail("built again"))
    assert [file.name for file in place.iterdir()] == ["a.jar"]
    assert zipfile.ZipFile(place / "a.jar").namelist() == ["META-INF/MANIFEST.MF", "A.class"]


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    place = tmp_path / "key"

    def fail(classes: Path, result: Path) -> None:
        fill(classes, result)
        raise RuntimeError("no compiler")

    with pytest.raises(RuntimeError):
        build_once(place, fail)
    assert [file.name for file in tmp_path.iterdir()] == [".lock"]


def test_the_newest_builds_are_kept(tmp_path: Path) -> None:
    for number in range(KEPT + 3):
        build_once(tmp_path / str(number), fill)
        os.utime(tmp_path / str(number), (number, number))
    kept = sorted(int(path.name) for path in tmp_path.iterdir() if path.is_dir())
    assert kept[-1] == KEPT + 2
    assert len(kept) == KEPT


def test_a_key_depends_on_names_content_and_versions(tmp_path: Path) -> None:
    file = tmp_path / "A.java"
    file.write_text("a")
    keys = {hash_files(tmp_path, [file], "4.1.3"), hash_files(tmp_path, [file], "4.2.0")}
    file.write_text("b")
    keys.add(hash_files(tmp_path, [file], "4.1.3"))
    keys.add(hash_files(tmp_path, [file.rename(tmp_path / "B.java")], "4.1.3"))
    assert len(keys) == 4


def test_the_place_of_the_jar_changes_with_the_version_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = {"HEADGATE_CACHE": str(tmp_path)}
    place = functions_jar_place(cache)
    assert place.is_relative_to(tmp_path / "spark-functions")
    monkeypatch.setattr(spark_functions, "version", lambda _: "4.2.0")
    assert functions_jar_place(cache) != place
    assert not place.exists(), "to know the place, nothing is compiled"


def test_the_wheel_carries_the_sources_that_are_compiled() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    (source, target) = re.findall(r'^"(java/\S+)" = "(\S+)"$', text, re.M)[0]
    assert functions_sources() == ROOT / spark_functions.PROJECT
    assert source == f"{spark_functions.PROJECT}/src/main/java"
    assert target == f"headgate/{spark_functions.PROJECT}/src/main/java"


def test_every_session_has_the_extension_of_a_class_that_is_there(tmp_path: Path) -> None:
    extensions = catalog_options(Settings(root=tmp_path))["spark.sql.extensions"].split(",")
    assert spark_functions.EXTENSION in extensions
    path = spark_functions.EXTENSION.replace(".", "/")
    assert (functions_sources() / f"src/main/java/{path}.java").is_file()


def test_the_pom_names_the_installed_spark_and_no_host() -> None:
    pom = ROOT / spark_functions.PROJECT / "pom.xml"
    found = ElementTree.parse(pom).findtext(f"{POM}properties/{POM}spark.version")
    assert found == version("pyspark")
    assert set(re.findall(r"https?://[^\s\"<]+", pom.read_text("utf-8"))) == {POM[1:-1]}


def test_no_java_file_is_longer_than_a_person_reads_at_once() -> None:
    files = (functions_sources() / "src").rglob("*.java")
    lengths = {file.name: len(file.read_text("utf-8").splitlines()) for file in files}
    assert not {name: count for name, count in lengths.items() if count > 500}


def test_only_one_process_builds_at_a_time(tmp_path: Path) -> None:
    """What another process built while this one waited for the lock is taken."""
    place = tmp_path / "key"
    with java_build._lock_builds(tmp_path):
        (tmp_path / ".build-of-a-killed-process").mkdir()
    place.mkdir()
    assert not build_once(place, fill)
