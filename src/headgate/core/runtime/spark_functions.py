"""The jar of our Spark functions, `strict_json` and `rule_verdict`, compiled once for this Spark and these sources.

Catalyst's classes change between minor versions of Spark, so that a jar serves the one it was compiled against.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from headgate.core.runtime.engine_bundles import bundle, ivy_jar
from headgate.core.runtime.engine_java import cache_dir
from headgate.core.runtime.engine_java_build import (
    Compiler,
    build_once,
    find_compiler,
    hash_files,
    list_java_files,
    read_classes,
    write_jar,
)

EXTENSION = "headgate.spark.HeadgateExtensions"
JAR = "headgate-spark-functions.jar"
PROJECT = "java/spark-functions"


def session_jars() -> tuple[Path, ...]:
    """The jars that every session has beside Spark's own: the bundle `spark`, and our functions."""
    return (*bundle("spark"), functions_jar())


def functions_jar(
    environ: Mapping[str, str] | None = None, compiler: Compiler | None = None
) -> Path:
    """The jar; it is compiled when it is not there."""
    jar = functions_jar_place(environ)

    def build(classes: Path, result: Path) -> None:
        chosen = compiler or find_compiler(environ)
        chosen.compile(list_java_files(functions_sources()), spark_jars(), classes)
        write_jar(result / JAR, read_classes(classes))

    build_once(jar.parent, build)
    return jar


def functions_jar_place(environ: Mapping[str, str] | None = None) -> Path:
    """Where the jar is or will be, which depends on the sources and on the version of Spark."""
    sources = functions_sources()
    key = hash_files(sources, list_java_files(sources), _spark_version())
    return cache_dir(environ) / "spark-functions" / key / JAR


def functions_sources() -> Path:
    """The Java sources: below the package where it was installed from a wheel, else in the project's folder."""
    package = Path(__file__).parents[2]
    installed = package / PROJECT
    return installed if installed.is_dir() else package.parents[1] / PROJECT


def spark_jars() -> tuple[Path, ...]:
    """The jars of PySpark, which the sources are compiled against."""
    return tuple(sorted(ivy_jar().parent.glob("*.jar")))


def _spark_version() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "none"  # a configuration is rendered without Spark, too
