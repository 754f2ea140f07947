"""`headgate dataset new`: from a Parquet file to a manifest that passes its check."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from tests.support import parquet_files as odd

from headgate.cli.main import cli
from headgate.errors import HeadgateError, OperationError, UsageError
from headgate.pipeline.loader import load_dataset
from headgate.pipeline.spec import Dataset

ROOT = Path(__file__).parents[3]
Columns = dict[str, pa.Array]


@pytest.fixture(autouse=True)
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "datasets" / "_template", project / "datasets" / "_template")
    monkeypatch.chdir(project)
    return project


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["dataset", *arguments])


def made(columns: Columns, *arguments: str) -> tuple[Dataset, str]:
    """The manifest as it was written, after its check."""
    file = odd.write_parquet(Path("events.parquet"), columns)
    result = run("new", "events", "--from", str(file), *arguments)
    assert result.exception is None, result.exception
    assert run("check", "events").exception is None
    manifest = Path("datasets/events/dataset.yml")
    return load_dataset(manifest, {}).value, manifest.read_text()


def refusal(columns: Columns, *arguments: str) -> HeadgateError:
    file = odd.write_parquet(Path("events.parquet"), columns)
    result = run("new", "events", "--from", str(file), *arguments)
    assert isinstance(result.exception, HeadgateError)
    assert not Path("datasets/events").exists()
    return result.exception


def test_each_type_of_the_file_has_types_on_its_way() -> None:
    dataset, text = made(odd.every_kind())
    found = {c.name: (str(c.kafka_type), str(c.bronze_type)) for c in dataset.columns}
    assert found == {
        "id": ("BIGINT", "BIGINT"),
        "at": ("STRING", "TIMESTAMP(6)"),
        "seen": ("STRING", "TIMESTAMP_LTZ(3)"),
        "small": ("INT", "INT"),
        "unsigned": ("DECIMAL(20, 0)", "DECIMAL(20, 0)"),
        "price": ("DECIMAL(10, 2)", "DECIMAL(10, 2)"),
        "huge": ("DECIMAL(38, 0)", "DECIMAL(38, 0)"),
        "tiny": ("DECIMAL(38, 28)", "DECIMAL(38, 28)"),
        "beyond": ("STRING", "STRING"),
        "ratio": ("DOUBLE", "DOUBLE"),
        "single": ("DOUBLE", "DOUBLE"),
        "flag": ("BOOLEAN", "BOOLEAN"),
        "day": ("STRING", "DATE"),
        "clock": ("STRING", "STRING"),
        "took": ("BIGINT", "BIGINT"),
        "kind": ("STRING", "STRING"),
        "long": ("STRING", "STRING"),
        "empty": ("STRING", "STRING"),
        "absent": ("DOUBLE", "DOUBLE"),
        "tags": ("JSON", "STRING"),
        "place": ("JSON", "STRING"),
        "notes": ("JSON", "STRING"),
    }
    assert (dataset.event_ts_col, dataset.dedup_key) == ("at", ("id",))
    assert dataset.ts_format == "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]"
    assert "Others that could be it: seen, day." in text
    assert "66 null (33.0%); 2 different; 1, 2" in text


def test_all_proposed_filters_are_conditions_that_the_check_admits() -> None:
    for columns in (odd.every_kind(), odd.odd_names()):
        _, text = made(columns, "--force")
        manifest = Path("datasets/events/dataset.yml")
        proposed = re.sub(r"^  # - ", "  - ", text, flags=re.MULTILINE)
        assert proposed != text
        manifest.write_text(proposed)
        assert run("check", "events").exception is None


def test_odd_names_work_and_have_plain_names_in_silver() -> None:
    dataset, _ = made(odd.odd_names())
    silver = {c.name: c.silver_name for c in dataset.columns}
    assert silver["naïve größe"] == "naive_grosse"
    assert silver["数量"] == "column_7"
    assert silver["100%"] == "n_100_percent"
    assert (silver["FooBar"], silver["foo_bar"]) == ("foo_bar", "foo_bar_2")
    assert len(set(silver.values())) == len(silver)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.b", "a dot"),
        ('a"b', "a quote"),
        ("a`b", "a quote"),
        ("${HOME}", "`${`"),
        ("a\nb", "a control character"),
        (" a", "blanks around"),
        ("ID", "another's name but for the case"),
        ("kafka_offset", "Headgate uses itself"),
        ("Kafka_Key", "Headgate uses itself"),
        ("", "has no name"),
    ],
)
def test_a_name_that_cannot_go_the_way_is_refused_with_a_command_that_mends_it(
    name: str, words: str
) -> None:
    error = refusal({"id": odd.integers(), name: odd.integers()})
    assert isinstance(error, OperationError)
    assert words in error.why
    command = re.search(r' -c "(.*)"', error.fix)
    assert command
    exec(command.group(1), {})
    result = run("new", "events", "--from", "events.renamed.parquet")
    assert result.exception is None


def test_bytes_are_refused_in_words() -> None:
    error = refusal({"id": odd.integers(), "raw": odd.repeat_values([b"x"], pa.binary())})
    assert "is binary: JSON has no bytes" in error.why
    assert "hexadecimal" in error.fix


def test_without_a_time_the_record_s_own_is_taken() -> None:
    dataset, text = made({"id": odd.integers(), "name": odd.repeat_values(["x"], pa.string())})
    assert dataset.event_ts_col == "kafka_timestamp"
    assert dataset.partition_date_expr == "CAST(kafka_timestamp AS DATE)"
    assert not any(column.is_event_ts for column in dataset.columns)
    assert "no time of their own" in text


def test_a_file_without_rows_gives_a_manifest_that_says_so() -> None:
    dataset, text = made({name: column[:0] for name, column in odd.every_kind().items()})
    assert dataset.event_ts_col in ("at", "kafka_timestamp")
    assert "The file has no rows" in text
    assert text.count("the file has no rows") == len(dataset.columns)


def test_a_wide_file_works() -> None:
    dataset, _ = made(odd.wide(300))
    assert len(dataset.columns) == 300
    assert dataset.dedup_key == ("id",)


def texts(*values: str | None) -> Columns:
    return {"id": odd.integers(len(values)), "when": pa.array(values, pa.string())}


@pytest.mark.parametrize(
    ("values", "bronze", "pattern"),
    [
        (["2013-01-01T06:00:00Z", None], "TIMESTAMP_LTZ(3)", "yyyy-MM-dd'T'HH:mm:ssXXX"),
        (["2013-01-01 06:00:00", "2013-01-01 06:00:01.5"], "TIMESTAMP(6)", "yyyy-MM-dd HH:mm:ss[.SSSSSS]"),
        (["2013-01-01T06:00", "2013-01-01 06:00:01"], "TIMESTAMP(3)", "yyyy-MM-dd['T'][ ]HH:mm[:ss]"),
        (["2013-01-01", "2013-01-02"], "TIMESTAMP(3)", "yyyy-MM-dd"),
    ],
)  # fmt: skip
def test_times_that_are_text_are_times(values: list[str], bronze: str, pattern: str) -> None:
    dataset, _ = made(texts(*values))
    assert dataset.event_ts_col == "when"
    assert str(dataset.column("when").bronze_type) == bronze
    assert dataset.ts_format == pattern


@pytest.mark.parametrize("value", ["2013-02-30T06:00:00", "2013-01-01T25:00:00", "NA", "12:00"])
def test_a_text_that_only_looks_like_a_time_stays_text(value: str) -> None:
    dataset, _ = made(texts("2013-01-01T06:00:00", value))
    assert dataset.event_ts_col == "kafka_timestamp"
    assert str(dataset.column("when").bronze_type) == "STRING"


def test_times_finer_than_a_microsecond_stay_text_unless_they_are_the_event_time() -> None:
    fine = pa.array([1, 2_000], pa.timestamp("ns"))
    dataset, text = made({"at": odd.timestamps(2), "fine": fine})
    assert str(dataset.column("fine").bronze_type) == "STRING"
    assert "keeps all digits" in text
    dataset, text = made({"fine": fine}, "--force")
    assert str(dataset.column("fine").bronze_type) == "TIMESTAMP(6)"
    assert dataset.ts_format == "yyyy-MM-dd'T'HH:mm:ss[.SSSSSSSSS]"
    assert "the rest is cut off" in text


def test_values_that_json_cannot_say_are_counted() -> None:
    ratio = pa.array([1.0, float("nan"), float("inf"), None], pa.float64())
    _, text = made({"id": odd.integers(4), "ratio": ratio})
    assert "2 are NaN or infinite" in text


def test_the_likeliest_time_is_chosen_and_another_can_be() -> None:
    columns = {
        "id": odd.integers(),
        "updated_at": odd.timestamps(),
        "created_at": odd.timestamps(),
        "birth_date": odd.repeat_values([datetime(1990, 1, 1).date()], pa.date32()),
    }
    assert made(columns)[0].event_ts_col == "created_at"
    assert made(columns, "--force", "--event-time", "updated_at")[0].event_ts_col == "updated_at"
    error = run("new", "other", "--from", "events.parquet", "--event-time", "id").exception
    assert isinstance(error, UsageError)
    assert "columns of times: created_at, updated_at, birth_date" in error.fix
    error = run("new", "other", "--from", "events.parquet", "--event-time", "createdat").exception
    assert isinstance(error, UsageError)
    assert "Did you mean `created_at`? Or --event-time kafka_timestamp" in error.fix


@pytest.mark.parametrize("wish", ["--event-time", "--key"])
def test_a_column_that_is_not_there_is_refused_before_any_row_is_looked_at(
    wish: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("headgate.core.profiler.draft.scan")
    error = refusal({"id": odd.integers(), "at": odd.timestamps()}, wish, "nope")
    assert "the file has no column `nope`" in str(error)
    assert error.why == "its columns: id, at"


def test_a_key_of_several_columns_is_found() -> None:
    columns = {
        "station_id": pa.array([n % 5 for n in range(odd.ROWS)], pa.int64()),
        "at": pa.array([n // 5 for n in range(odd.ROWS)], pa.timestamp("s")),
        "value": pa.array([n / 7 for n in range(odd.ROWS)], pa.float64()),
    }
    dataset, text = made(columns)
    assert dataset.dedup_key == ("station_id", "at")
    assert dataset.key_field == "station_id"
    assert "All 200 rows differ in them." in text


def test_rows_that_repeat_do_not_hide_the_key() -> None:
    columns = {
        "id": pa.array([*range(100), 0, 1], pa.int64()),
        "kind": odd.repeat_values(["x"], pa.string(), 102),
    }
    dataset, text = made(columns)
    assert dataset.dedup_key == ("id",)
    assert "2 of 102 rows repeat another in every column" in text


def test_where_nothing_less_will_do_only_equal_rows_are_one_event() -> None:
    rows = 64
    columns = {
        f"bit{n}": pa.array([row >> n & 1 for row in range(rows)], pa.int64()) for n in range(6)
    }
    columns["tags"] = odd.repeat_values([["x"]], pa.list_(pa.string()), rows)
    dataset, text = made(columns)
    assert dataset.dedup_key == tuple(f"bit{n}" for n in range(6))
    assert "All 64 rows differ in them." in text
    columns["tags"] = pa.array([["x"]] * 63 + [["y"]], pa.list_(pa.string()))
    columns["bit0"] = pa.array([0] * rows, pa.int64())
    dataset, text = made(columns, "--force")
    assert dataset.dedup_key == (*(f"bit{n}" for n in range(6)), "tags")
    assert "31 of 64 rows repeat another in every column" in text


def test_a_given_key_is_held_against_all_rows() -> None:
    columns = {"id": odd.integers(), "kind": odd.repeat_values(["x", "y"], pa.string())}
    dataset, text = made(columns, "--key", "kind")
    assert dataset.dedup_key == ("kind",)
    assert "198 of 200 rows have the values of another row" in text
    error = run("new", "other", "--from", "events.parquet", "--key", "id,knid").exception
    assert isinstance(error, UsageError)
    assert "Did you mean `kind`?" in error.fix


def test_a_large_file_is_looked_at_in_part_and_the_manifest_says_so() -> None:
    file = odd.write_parquet(Path("large.parquet"), {"id": odd.integers(1_000)}, row_group_size=100)
    run("new", "large", "--from", str(file), "--rows", "200")
    text = Path("datasets/large/dataset.yml").read_text()
    assert "200 of 1,000 rows were looked at, spread over the file" in text
    assert "0 to 599" in text
    assert "All 1,000 rows differ in them." in text


def test_a_manifest_is_not_overwritten_unless_that_is_wanted() -> None:
    columns = {"id": odd.integers()}
    made(columns)
    manifest = Path("datasets/events/dataset.yml")
    manifest.write_text("mine")
    error = run("new", "events", "--from", "events.parquet").exception
    assert isinstance(error, UsageError)
    assert "headgate dataset new events --from events.parquet --force" in error.fix
    assert manifest.read_text() == "mine"
    made(columns, "--force")
    assert manifest.with_name("dataset.yml.previous").read_text() == "mine"


def test_a_dry_run_prints_the_manifest_and_writes_nothing() -> None:
    file = odd.write_parquet(Path("events.parquet"), {"id": odd.integers()})
    result = run("new", "events", "--from", str(file), "--dry-run")
    assert "event_ts_col: kafka_timestamp" in result.stdout
    assert not Path("datasets/events").exists()


def test_the_next_steps_build_the_marts_before_they_are_validated() -> None:
    file = odd.write_parquet(Path("events.parquet"), odd.every_kind())
    said = run("new", "events", "--from", str(file)).stderr
    steps = [line.strip() for line in said.splitlines() if line.startswith("  make ")]
    assert steps.index("make dbt-build") < steps.index("make validate certify")


def test_the_duplicates_that_silver_will_drop_are_counted() -> None:
    at = [datetime(2024, 1, 1, 0, n) for n in (1, 2, 3)]
    columns = {"id": pa.array([1, 2, 2]), "at": pa.array(at)}
    file = odd.write_parquet(Path("events.parquet"), columns)
    said = run("new", "events", "--from", str(file), "--key", "id").stderr
    assert "1 row has the key of another row: silver keeps the newest of each" in said


@pytest.mark.parametrize("name", ["rows.csv", "it's.csv", "rows.JSONL"])
def test_a_file_of_another_format_comes_with_a_command_that_converts_it(name: str) -> None:
    text = '{"id": 1}\n{"id": 2}\n' if "JSON" in name else "id\n1\n2\n"
    Path(name).write_text(text)
    error = run("new", "events", "--from", name).exception
    assert isinstance(error, OperationError)
    _python, _option, code = shlex.split(error.fix.removeprefix("convert it: "))
    exec(code)  # as the shell would; a unit test starts no process
    result = run("new", "events", "--from", str(Path(name).with_suffix(".parquet")))
    assert result.exception is None, result.exception


def test_what_comes_next_names_the_file_only_where_it_must(project: Path) -> None:
    (project / "data" / "more").mkdir(parents=True)
    told = {
        "data/events.parquet": "export DATASET=events",
        "data/more/x.parquet": "export DATASET=events DATA_PATH=/data/more/x.parquet",
        "my events.parquet": f"export DATASET=events HOST_DATA_DIR={project} DATA_PATH='/data/my events.parquet'",
        "events.parquet": f"export DATASET=events HOST_DATA_DIR={project}",
    }  # fmt: skip
    for place, words in told.items():
        odd.write_parquet(Path(place), {"id": odd.integers()})
        result = run("new", "events", "--from", place, "--force")
        assert [line for line in result.stderr.splitlines() if "export" in line] == [f"  {words}"]


def test_a_file_of_nested_columns_alone_has_a_key() -> None:
    columns = {
        "tags": odd.repeat_values([["x"], ["y"]], pa.list_(pa.string()), 2),
        "empty": pa.nulls(2),
    }
    assert made(columns)[0].dedup_key == ("tags",)


def test_the_schema_of_its_rows_is_written_too(project: Path) -> None:
    made({"id": odd.integers(), "at": odd.timestamps()})
    schema = json.loads((project / "schemas" / "events.json").read_text())
    assert schema["required"] == ["id", "at"]
    assert schema["properties"]["id"] == {"type": "integer"}


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda file: None, "there is no file"),
        (lambda file: file.write_text("id,at"), "is not a Parquet file"),
    ],
)
def test_a_file_that_is_none_is_refused(prepare: Callable[[Path], object], words: str) -> None:
    prepare(Path("events.parquet"))
    error = run("new", "events", "--from", "events.parquet").exception
    assert isinstance(error, HeadgateError)
    assert words in error.what


def test_a_name_whose_tables_another_dataset_has_is_refused() -> None:
    made({"id": odd.integers()})
    error = run("new", "Events", "--from", "events.parquet").exception
    assert isinstance(error, UsageError)
    assert error.what == "bronze.raw_events belongs to the dataset events"


def test_a_name_that_is_none_is_refused() -> None:
    error = run("new", "my orders", "--from", "x.parquet").exception
    assert isinstance(error, UsageError)
    assert "not a name for a dataset" in error.what
