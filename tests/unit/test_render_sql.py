"""Templates are filled strictly: what is missing, malformed or could break out is refused."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from headgate.config.env_files import Sources, from_environment, read_profile
from headgate.config.settings import Settings, load_settings
from headgate.core.engine import spark_options
from headgate.core.sql.script import Template, parse_script
from headgate.errors import SettingsError
from headgate.pipeline.build import Build, catalog_statements, plan_build, property_lines

ROOT = Path(__file__).parents[2]
PROFILES = sorted(path.stem for path in (ROOT / "env").glob("*.env"))


def render(text: str, **values: str | None) -> str:
    return Template("a.sql.tmpl", text).render(values)


def refusal(text: str, **values: str | None) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        render(text, **values)
    return caught.value


def settings(profile: str = "embedded", **environ: str) -> Settings:
    path = ROOT / "env" / f"{profile}.env"
    return Settings.from_sources(
        Sources(ROOT, (read_profile(path, path.name), from_environment(environ)))
    )


@pytest.fixture(scope="module")
def built() -> Build:
    return plan_build(settings(BOOTSTRAP_SERVERS="broker:9092"), "taxi")


def text_of(build: Build, file: str) -> str:
    return next(f.text for f in build.files if f.path.name == file)


def test_a_variable_is_replaced_wherever_it_stands() -> None:
    assert render("${A}.${B} ${A}", A="x", B="y") == "x.y x"


def test_text_without_variables_stays_as_it_is() -> None:
    assert render("SELECT '$5', $$, {A} -- $A") == "SELECT '$5', $$, {A} -- $A"


def test_blanks_around_a_value_are_taken_off() -> None:
    assert render("'${TOPIC}'", TOPIC="  orders \t") == "'orders'"


def test_a_value_is_not_rendered_again() -> None:
    assert render("${A}", A="${B}", B="x") == "${B}"


def test_variables_are_listed_once_in_order_of_first_use() -> None:
    assert Template("f", "${B}${A}${B}").variables() == ("B", "A")


@pytest.mark.parametrize("value", [None, "", "  "])
def test_an_unset_variable_is_refused(value: str | None) -> None:
    error = refusal("${TOPIC}", TOPIC=value)
    assert "TOPIC is not set" in error.why
    assert error.exit_code == 3


def test_an_unknown_variable_is_refused_with_its_line() -> None:
    assert "a.sql.tmpl:3: ${TOPIK}: TOPIK is not set" in refusal("a\nb\nc ${TOPIK}").why


def test_everything_that_is_wrong_is_said_at_once() -> None:
    why = refusal("${A} ${B}\n${C-D}", A="x'").why
    assert all(name in why for name in ("${A}", "${B}", "${C-D}"))


@pytest.mark.parametrize("left", ["${}", "${A B}", "${A:-x}", "${A"])
def test_a_malformed_placeholder_is_refused(left: str) -> None:
    assert "is not a variable name" in refusal(f"SELECT {left}", A="x").why


@pytest.mark.parametrize("value", ["a'b", 'a"b', "a`b", "a;b", "a--b", "a/*b", "a\\b", "a\nb"])
def test_a_value_that_would_change_the_sql_is_refused(value: str) -> None:
    assert "would end its place" in refusal("'${A}'", A=value).why


def test_a_value_of_a_configuration_may_hold_anything_but_a_line_end() -> None:
    template = Template("spark.conf", "k ${A}")
    assert template.render({"A": "it's;--fine"}) == "k it's;--fine"
    with pytest.raises(SettingsError):
        template.render({"A": "x\ny z"})


def test_lines_that_the_compiler_made_are_not_judged_as_values() -> None:
    assert Template("a.sql", "${LINES}").render({}, {"LINES": "SET a;\nSET b;"}) == "SET a;\nSET b;"


def test_a_comment_behind_a_value_in_the_profile_does_not_reach_the_sql(project: Path) -> None:
    for folder in ("datasets", "spark"):
        shutil.copytree(ROOT / folder, project / folder)
    profile = (project / "env" / "embedded.env").read_text()
    commented = re.sub(r"^TOPIC=.*$", "TOPIC=cabs   # the busy one", profile, flags=re.MULTILINE)
    (project / ".env").write_text(commented)
    text = text_of(plan_build(load_settings(project, {}), "taxi"), "05_bronze_batch.sql")
    assert "'subscribe' 'cabs'," in text
    assert "busy" not in text


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_renders_without_a_placeholder_left(profile: str) -> None:
    for file in plan_build(settings(profile), "taxi").files:
        assert "${" not in file.text, file.path


def test_the_catalog_is_set_by_statements_that_say_what_the_configuration_says(
    built: Build,
) -> None:
    conf = text_of(built, "spark-defaults.conf")
    sets = re.findall(r"^SET `(.*)`=`(.*)`;$", text_of(built, "00_catalog.sql"), re.MULTILINE)
    assert ("spark.sql.catalog.lake.type", "jdbc") in sets
    assert all(f"{key} {value}\n" in conf for key, value in sets)


def test_the_rest_catalog_has_a_file_of_its_own() -> None:
    rest = settings("local", CATALOG="rest", CATALOG_URI="http://localhost:8181")
    names = {file.path.name for file in plan_build(rest, "taxi").files}
    assert "00_catalog_rest.sql" in names
    assert "00_catalog.sql" not in names
    assert "SET `spark.sql.catalog.lake.uri`=`http://localhost:8181`;" in catalog_statements(rest)


@pytest.mark.parametrize("file", ["05_bronze_batch.sql", "07_bronze_streaming.sql"])
def test_bronze_holds_its_kafka_source(built: Build, file: str) -> None:
    text = text_of(built, file)
    (source,) = parse_script(file, text).named("source")
    assert "'kafka.bootstrap.servers' 'broker:9092'" in source
    assert "'subscribe' 'taxi.raw_trips'" in source
    assert "CREATE TABLE IF NOT EXISTS lake.bronze.raw_trips (" in text


@pytest.mark.parametrize("file", ["06_silver.sql", "06_silver_incremental.sql"])
def test_silver_reads_bronze_and_is_partitioned_by_the_date(built: Build, file: str) -> None:
    text = text_of(built, file)
    assert "SELECT * FROM lake.bronze.raw_trips;" in text
    assert "PARTITIONED BY (pickup_date)" in text
    assert "fare_amount DECIMAL(10, 2)" in text


def test_the_streaming_file_is_the_batch_file_with_another_header(built: Build) -> None:
    batch, stream = (
        text_of(built, file) for file in ("05_bronze_batch.sql", "07_bronze_streaming.sql")
    )
    assert batch.split("\n\n", 1)[1] == stream.split("\n\n", 1)[1]
    assert "-- Trigger: a batch every 10 seconds" in stream.split("\n\n", 1)[0]


def test_the_configuration_is_what_the_engine_runs_with(built: Build) -> None:
    chosen = settings(BOOTSTRAP_SERVERS="broker:9092")
    conf = text_of(built, "spark-defaults.conf")
    for options in (spark_options.sql_options(chosen), spark_options.catalog_options(chosen)):
        assert property_lines(options) in conf


def test_the_configuration_follows_the_storage() -> None:
    minio = text_of(plan_build(settings("local"), "taxi"), "spark-defaults.conf")
    assert "spark.hadoop.fs.s3a.endpoint http://localhost:9000\n" in minio
    assert "spark.hadoop.fs.s3a.path.style.access true\n" in minio
    aws = text_of(plan_build(settings("aws"), "taxi"), "spark-defaults.conf")
    assert "s3a.access.key" not in aws
    assert "spark.hadoop.fs.s3a.path.style.access false\n" in aws


def test_a_backslash_in_an_option_survives_the_properties_file() -> None:
    assert property_lines({"spark.local.dir": r"C:\temp"}) == r"spark.local.dir C:\\temp"
