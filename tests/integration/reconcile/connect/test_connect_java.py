"""The Java side, compiled here: every shared vector, and the plugins' own cases in one JVM."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tools.hash_vectors import vectors

from headgate.core.runtime.bundles import bundle, class_path
from headgate.core.runtime.java import cache_dir, find_java
from headgate.core.runtime.java_build import (
    PLUGINS,
    Compiler,
    Ecj,
    build_plugins,
    compile_path,
    find_compiler,
)
from headgate.errors import OperationError, UnavailableError

ROOT = Path(__file__).parents[4]
SOURCES = ROOT / "java/connect-plugins"
VECTORS = SOURCES / "vectors/hash_vectors.jsonl"


def ecj() -> Ecj:
    return Ecj(find_java(), bundle("ecj")[0])


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A cache of this module's own, with the jars that are at hand already."""
    place = tmp_path_factory.mktemp("cache")
    compile_path()
    (place / "jars").symlink_to(cache_dir() / "jars")
    return {**os.environ, "HEADGATE_CACHE": str(place)}


@dataclass(frozen=True)
class Compiled:
    """Our plugins as they are built, and the cases compiled against them."""

    plugins: Path
    cases: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        path = class_path([self.cases, *own_jars(self.plugins), *compile_path()])
        java = [str(find_java().executable), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        return subprocess.run(
            [*java, "-cp", path, *words], capture_output=True, text=True, timeout=480, check=False
        )


def own_jars(plugins: Path) -> list[Path]:
    return [plugins / plugin.folder / plugin.jar for plugin in PLUGINS]


@pytest.fixture(scope="module")
def compiled(cache: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Cases for Maven alone end in Test."""
    plugins, out = build_plugins(SOURCES, cache).folder, tmp_path_factory.mktemp("classes")
    cases = (SOURCES / "src/test/java").rglob("*.java")
    own = [file for file in sorted(cases) if not file.name.endswith("Test.java")]
    find_compiler().compile(own, [*own_jars(plugins), *compile_path()], out)
    return Compiled(plugins, out)


def test_java_gives_the_hash_of_every_vector_in_three_zones_and_three_locales(
    compiled: Compiled,
) -> None:
    done = compiled.run("headgate.connect.hash.VectorCheck", str(VECTORS))
    count = VECTORS.read_text("utf-8").count("\n")
    assert done.stdout.splitlines()[-1] == f"{count} vectors, 3 zones, 3 locales, 0 differences"
    assert done.returncode == 0
    assert count >= 2_000


@pytest.mark.slow
def test_java_agrees_with_python_on_vectors_of_other_seeds(
    compiled: Compiled, tmp_path: Path
) -> None:
    drawn = [vector.line for seed in range(100, 103) for vector in vectors(seed)]
    (tmp_path / "vectors.jsonl").write_bytes(b"".join(drawn))
    done = compiled.run("headgate.connect.hash.VectorCheck", str(tmp_path / "vectors.jsonl"))
    last = f"{len(drawn)} vectors, 3 zones, 3 locales, 0 differences"
    assert done.stdout.splitlines()[-1] == last


def test_a_wrong_vector_is_found(compiled: Compiled, tmp_path: Path) -> None:
    wrong = tmp_path / "vectors.jsonl"
    first = VECTORS.read_text("utf-8").partition("\n")[0]
    wrong.write_text(first.replace('"x"', '"y"') + "\n", "utf-8")
    done = compiled.run("headgate.connect.hash.VectorCheck", str(wrong))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "1 vectors, 3 zones, 3 locales, 27 differences"


def test_the_cases_of_transformation_and_source_hold(compiled: Compiled) -> None:
    done = compiled.run("headgate.connect.Cases")
    failed = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
    assert failed == []
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) >= 30


def contents(folder: Path) -> dict[str, list[str]]:
    """What is in each plugin's jar; inner classes are the compiler's affair."""
    jars = {jar.parent.name: zipfile.ZipFile(jar) for jar in own_jars(folder)}
    return {
        plugin: [name for name in jar.namelist() if "$" not in name] for plugin, jar in jars.items()
    }


@pytest.mark.slow
def test_both_compilers_build_the_same_plugins_with_their_service_files(
    cache: dict[str, str],
) -> None:
    usual = contents(build_plugins(SOURCES, cache).folder)
    assert usual == contents(build_plugins(SOURCES, cache, ecj()).folder)
    for plugin in PLUGINS:
        assert f"META-INF/services/{plugin.service}" in usual[plugin.folder]
    assert "com/company/kafka/connect/smt/HashRowSMT.class" in usual["hash-smt"]
    assert "headgate/connect/CassandraPollTask.class" in usual["cassandra-source"]
    assert not [name for name in usual["hash-smt"] if "cassandra" in name.lower()]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mvn") is None, reason="Maven is not installed")
def test_maven_builds_the_same_plugins_and_runs_the_cases(
    cache: dict[str, str], tmp_path: Path
) -> None:
    """Slow: a first run fetches about 80 MB into the cache, a later one finds them there."""
    shutil.copytree(SOURCES, tmp_path / "connect", ignore=shutil.ignore_patterns("target"))
    repository = f"-Dmaven.repo.local={cache_dir() / 'maven'}"
    done = subprocess.run(
        ["mvn", "-B", "-q", repository, "-f", str(tmp_path / "connect" / "pom.xml"), "package"],
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    target = tmp_path / "connect" / "target"
    assert list((target / "surefire-reports").glob("TEST-*.xml"))
    built = build_plugins(SOURCES, cache).folder
    assert classes_in(target / "plugins") == classes_in(built)


def classes_in(folder: Path) -> dict[str, set[str]]:
    """Classes and service files; Maven adds files of its own."""
    return {
        plugin: {n for n in names if n.endswith(".class") or n.startswith("META-INF/services/")}
        - {"META-INF/services/"}
        for plugin, names in contents(folder).items()
    }


def test_each_plugin_has_its_own_folder_and_the_source_brings_its_driver(
    cache: dict[str, str],
) -> None:
    folder = build_plugins(SOURCES, cache).folder
    assert {place.name for place in folder.iterdir()} == {"hash-smt", "cassandra-source"}
    assert [jar.name for jar in (folder / "hash-smt").iterdir()] == ["custom-hash-smt.jar"]
    assert list((folder / "cassandra-source").glob("java-driver-core-*.jar"))


def test_the_same_sources_are_compiled_once(cache: dict[str, str]) -> None:
    build_plugins(SOURCES, cache)
    assert not build_plugins(SOURCES, cache).fresh


@pytest.mark.parametrize("compiler", [find_compiler, ecj], ids=["usual", "ecj"])
def test_a_warning_is_an_error(compiler: Callable[[], Compiler], tmp_path: Path) -> None:
    odd = tmp_path / "Odd.java"
    odd.write_text("import java.util.List; class Odd { List raw; }")
    with pytest.raises(OperationError) as refused:
        compiler().compile([odd], [], tmp_path / "out")
    assert "Odd.java" in refused.value.why


def test_without_sources_it_says_where_to_run(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="Java sources of"):
        build_plugins(tmp_path)
