"""Options of the driver's JVM: a path with a blank stays one option."""

from __future__ import annotations

import shlex

import pytest

from headgate.core.engine.spark_options import quote_java_options

OPTIONS = [
    "-XX:+UseSerialGC",
    "-Dheadgate.log=/home/me/my project/logs/spark.log",
    """-Da=it's "quoted" \\ here""",
    "-Db=tab\there",
]


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_is_split_off_as_it_was(option: str) -> None:
    """Spark's launcher splits as a shell does, within the double quotes that are used here."""
    assert shlex.split(quote_java_options(option, "-Dlast=1")) == [option, "-Dlast=1"]


def test_an_option_without_blanks_is_not_quoted() -> None:
    assert quote_java_options(*OPTIONS[:1], "-Dx=/tmp/a") == "-XX:+UseSerialGC -Dx=/tmp/a"
