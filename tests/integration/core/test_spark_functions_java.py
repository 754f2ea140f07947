"""The Spark functions' Java side: its own cases, the shared cases and the fuzz test, each in one JVM."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.strict_json import CASE_FILE, PROJECT

from headgate.core.runtime.bundles import bundle, class_path
from headgate.core.runtime.java import cache_dir, find_java
from headgate.core.runtime.java_build import Ecj, find_compiler, functions_jar, spark_jars

SEED = 4100


@dataclass(frozen=True)
class CompiledCases:
    """The jar as sessions have it, and the cases compiled against it."""

    folder: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = class_path([self.folder, functions_jar(), *spark_jars()])
        java = [str(find_java().executable), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        return subprocess.run(
            [*java, "-cp", path, *arguments],
            capture_output=True,
            text=True,
            timeout=540,
            check=False,
            env={"SPARK_LOCAL_IP": "127.0.0.1"},
        )


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> CompiledCases:
    """Files for Maven alone end in Test."""
    files = sorted((PROJECT / "src/test/java").rglob("*.java"))
    own = [file for file in files if not file.name.endswith("Test.java")]
    folder = tmp_path_factory.mktemp("cases")
    find_compiler().compile(own, [functions_jar(), *spark_jars()], folder)
    return CompiledCases(folder)


def test_the_cases_of_arguments_keys_records_and_verdicts_pass(cases: CompiledCases) -> None:
    done = cases.run("headgate.spark.Cases")
    lines = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "FAILED "))]
    assert [line for line in lines if not line.startswith("ok ")] == []
    assert done.returncode == 0
    assert len(lines) >= 25


def test_both_ways_of_reading_give_the_outcomes_of_the_shared_cases(cases: CompiledCases) -> None:
    done = cases.run("headgate.spark.RecordCaseFile", str(CASE_FILE))
    count = len(CASE_FILE.read_text("utf-8").splitlines())
    assert done.stdout.splitlines()[-1] == f"{count} cases, 0 differences"


def fuzz(cases: CompiledCases, seed: int, count: int) -> None:
    """Compare fast and slow way on so many records under each contract."""
    print(f"seed {seed}")
    done = cases.run("headgate.spark.ScanFuzz", str(seed), str(count))
    form = r"drift \w+: \d+ records, \d+ accepted, (\d+) of them by the fast way, (\d+) differences"
    found = re.findall(form, done.stdout)
    assert [differences for _, differences in found] == ["0", "0"], done.stdout[:4000]
    assert int(found[0][0]) > count / 10, "the fast way is not tried enough"


def test_what_the_fast_way_accepts_jackson_accepts_with_equal_values(cases: CompiledCases) -> None:
    fuzz(cases, SEED, 10_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_same_for_many_records(cases: CompiledCases, seed: int) -> None:
    fuzz(cases, seed, 200_000)


@pytest.mark.slow
def test_both_compilers_compile_the_functions(tmp_path: Path) -> None:
    files = sorted((PROJECT / "src/main/java").rglob("*.java"))
    for compiler in (find_compiler(), Ecj(find_java(), bundle("ecj")[0])):
        compiler.compile(files, spark_jars(), tmp_path / compiler.name)
        assert (tmp_path / compiler.name / "headgate/spark/HeadgateExtensions.class").is_file()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mvn") is None, reason="Maven is not installed")
def test_maven_builds_the_jar_and_runs_the_cases(tmp_path: Path) -> None:
    """Slow: a first run fetches Spark's libraries into the cache, a later one finds them there."""
    project = tmp_path / "spark-functions"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("target"))
    repository = f"-Dmaven.repo.local={cache_dir() / 'maven'}"
    done = subprocess.run(
        ["mvn", "-B", "-q", repository, "-f", str(project / "pom.xml"), "package"],
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert (project / "target/headgate-spark-functions.jar").is_file()
    assert list((project / "target/surefire-reports").glob("TEST-*.xml"))
