"""The settings: pure, typed, and refused with every fault at once."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from pydantic import ValidationError

from headgate.config.reference import MASK, InvalidSettingsError
from headgate.config.schema import NAMES, SECRETS, VARIABLES
from headgate.config.settings import Settings, load_settings
from headgate.errors import SettingsError

ROOT = Path(__file__).parents[2]
MINIO = {
    "storage": "minio",
    "s3_endpoint": "http://localhost:9000",
    "minio_root_user": "someone",
    "minio_root_password": "something",
}


def faults(**values: object) -> dict[str, str]:
    """What is wrong with these values: variable to words and fix."""
    with pytest.raises(InvalidSettingsError) as caught:
        Settings.model_validate(values)
    return {fault.field: f"{fault.what}. {fault.fix}" for fault in caught.value.faults}


def active(project: Path, text: str) -> Path:
    (project / ".env").write_text(text, encoding="utf-8")
    return project


# Axes and defaults


def test_without_anything_all_runs_on_this_machine() -> None:
    s = Settings()
    axes = (s.broker, s.catalog, s.storage, s.mode, s.spark_master)
    assert axes == ("embedded", "jdbc", "local", "batch", "local[*]")


@pytest.mark.parametrize("broker", ["redpanda", "kafka"])
def test_an_outside_broker_needs_its_address(broker: str) -> None:
    values = {"broker": broker, "bootstrap_servers": "there:9092"}
    assert Settings.model_validate(values).broker == broker
    assert "Write BOOTSTRAP_SERVERS=" in faults(broker=broker)["BOOTSTRAP_SERVERS"]


@pytest.mark.parametrize("mode", ["batch", "streaming_bronze", "streaming_silver"])
def test_every_mode_is_known(mode: str) -> None:
    assert Settings.model_validate({"mode": mode}).mode == mode


@pytest.mark.parametrize(
    "master", ["local", "local[2]", "local[*]", "spark://host:7077", "yarn", "k8s://https://host"]
)
def test_every_kind_of_master_is_known(master: str) -> None:
    assert Settings(spark_master=master).spark_master == master


@pytest.mark.parametrize("field", ["broker", "catalog", "storage", "mode", "generator_mode"])
def test_an_unknown_choice_is_refused_with_the_choices(field: str) -> None:
    assert "must be one of" in faults(**{field: "nonsense"})[NAMES[field]]


def test_a_slip_of_the_pen_is_recognised() -> None:
    assert faults(mode="streaming")["MODE"].endswith("Write MODE=streaming_bronze")
    assert faults(broker="redpnda")["BROKER"].endswith("Write BROKER=redpanda")


def test_thresholds_have_the_documented_defaults() -> None:
    s = Settings()
    assert (s.dlq_max, s.max_events, s.bronze_completeness_ratio) == (0, 0, 0.95)
    assert (s.wait_for_silver_min_rows, s.wait_for_silver_timeout, s.wait_for_silver_poll) == (
        1,
        90,
        5,
    )
    assert (s.http_timeout, s.iceberg_query_timeout, s.dbt_test_timeout) == (5, 90, 300)


def test_no_credential_has_a_default() -> None:
    s = Settings()
    assert [getattr(s, field) for field in SECRETS] == [None] * len(SECRETS)
    assert s.minio_root_user is None
    assert s.aws_access_key_id is None


# Single values


@pytest.mark.parametrize(
    "field", ["broker", "storage", "catalog", "mode", "topic", "validate_schema"]
)
def test_blanks_around_a_value_are_taken_off(field: str) -> None:
    value = {"broker": "embedded", "storage": "local", "catalog": "jdbc", "mode": "batch"}.get(
        field
    )
    plain = value or ("true" if field == "validate_schema" else "a.topic")
    extra = {"schema_path": "/schemas/s.json"} if field == "validate_schema" else {}
    spaced = Settings.model_validate({field: f"  {plain} \t", **extra})
    assert spaced == Settings.model_validate({field: plain, **extra})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dlq_max", "-1"),
        ("dlq_max", "some"),
        ("kafka_port", "70000"),
        ("generator_rate", "0"),
        ("bronze_completeness_ratio", "1.5"),
        ("wait_for_silver_timeout", "0"),
        ("validate_schema", "perhaps"),
        ("topic", "no spaces please"),
        ("spark_driver_memory", "lots"),
        ("spark_master", "flink"),
    ],
)
def test_a_malformed_value_is_refused_by_its_name(field: str, value: str) -> None:
    words = faults(**{field: value})
    assert list(words) == [NAMES[field]]
    assert value in words[NAMES[field]]


def test_a_setting_never_changes() -> None:
    with pytest.raises(ValidationError):
        Settings().topic = "other"  # that it fails is the point


def test_an_unknown_keyword_is_refused() -> None:
    assert "is no setting" in faults(brooker="kafka")["brooker"]


# Values against each other


@pytest.mark.parametrize("field", ["s3_endpoint", "minio_root_user", "minio_root_password"])
def test_minio_needs_endpoint_user_and_password(field: str) -> None:
    words = faults(**{k: v for k, v in MINIO.items() if k != field})
    assert list(words) == [NAMES[field]]
    assert "STORAGE=minio needs it" in words[NAMES[field]]


@pytest.mark.parametrize("endpoint", ["http://minio:9000", "http://localhost:9000"])
def test_aws_with_a_minio_endpoint_is_an_error(endpoint: str) -> None:
    words = faults(storage="aws_s3", warehouse="s3a://b/w/", s3_endpoint=endpoint)
    assert "STORAGE=minio" in words["S3_ENDPOINT"]


def test_aws_without_keys_relies_on_roles() -> None:
    assert Settings(storage="aws_s3", warehouse="s3a://b/w/").effective_s3_key is None


def test_half_a_pair_of_aws_keys_is_an_error() -> None:
    assert "AWS_ACCESS_KEY_ID needs it" in faults(aws_access_key_id="k")["AWS_SECRET_ACCESS_KEY"]


@pytest.mark.parametrize("storage", ["aws_s3", "gcs", "azure"])
def test_a_cloud_needs_its_warehouse(storage: str) -> None:
    assert f"STORAGE={storage} needs it" in faults(storage=storage)["WAREHOUSE"]


@pytest.mark.parametrize(
    ("storage", "warehouse"),
    [("gcs", "s3a://b/w"), ("azure", "gs://b/w"), ("aws_s3", "/tmp/w"), ("local", "s3a://b/w")],
)
def test_the_warehouse_fits_the_storage(storage: str, warehouse: str) -> None:
    assert warehouse in faults(storage=storage, warehouse=warehouse)["WAREHOUSE"]


def test_a_rest_catalog_needs_an_http_address() -> None:
    assert "CATALOG=rest needs it" in faults(catalog="rest")["CATALOG_URI"]
    assert "http://" in faults(catalog="rest", catalog_uri="jdbc:sqlite:x")["CATALOG_URI"]
    assert Settings(catalog="rest", catalog_uri="http://there/catalog").catalog_uri


def test_a_jdbc_catalog_needs_a_jdbc_address() -> None:
    assert "jdbc:" in faults(catalog="jdbc", catalog_uri="http://there")["CATALOG_URI"]
    assert Settings(home=Path("/h")).catalog_uri == "jdbc:sqlite:/h/catalog.db"


def test_ssl_and_endpoint_must_agree() -> None:
    assert "S3_USE_SSL=true" in faults(**{**MINIO, "s3_endpoint": "https://there"})["S3_USE_SSL"]


def test_the_duckdb_endpoint_has_no_scheme() -> None:
    words = faults(duckdb_s3_endpoint="http://localhost:9000")
    assert words["DUCKDB_S3_ENDPOINT"].endswith("Write DUCKDB_S3_ENDPOINT=localhost:9000")


def test_schema_validation_needs_a_schema() -> None:
    assert "VALIDATE_SCHEMA=true needs it" in faults(validate_schema=True)["SCHEMA_PATH"]


def test_dead_letters_need_a_topic_of_their_own() -> None:
    assert "DLQ_TOPIC=a.dlq" in faults(topic="a", dlq_topic="a")["DLQ_TOPIC"]


def test_a_host_path_as_data_path_is_refused_with_both_variables() -> None:
    words = faults(data_path="/home/me/rows.parquet")["DATA_PATH"]
    assert words.endswith("Write HOST_DATA_DIR=/home/me and DATA_PATH=/data/rows.parquet")


def test_all_faults_are_told_at_once() -> None:
    words = faults(broker="redpnda", storage="minio", dlq_max="x", aws_access_key_id="k")
    assert set(words) == {
        "BROKER",
        "DLQ_MAX",
        "S3_ENDPOINT",
        "MINIO_ROOT_USER",
        "MINIO_ROOT_PASSWORD",
        "AWS_SECRET_ACCESS_KEY",
    }


# What follows from the values


def test_two_variables_make_one_data_file() -> None:
    s = Settings(root=Path("/p"), host_data_dir="data", data_path="/data/rows.parquet")
    assert s.data_file == Path("/p/data/rows.parquet")
    absolute = Settings(root=Path("/p"), host_data_dir="/else", data_path="/data/a/b.parquet")
    assert absolute.data_file == Path("/else/a/b.parquet")


def test_places_follow_the_home_and_the_storage() -> None:
    local = Settings(root=Path("/p"), home=Path("state"))
    assert local.warehouse == "/p/state/warehouse"
    assert local.checkpoints == "/p/state/checkpoints"
    assert local.ops_store_url == "sqlite:////p/state/ops.db"
    assert Settings.model_validate(MINIO).checkpoints == "s3a://warehouse/_checkpoints"


def test_the_warehouse_as_duckdb_writes_it() -> None:
    assert Settings.model_validate(MINIO).warehouse_s3_path == "s3://warehouse/"


def test_aws_keys_come_before_those_of_minio() -> None:
    both = Settings.model_validate(
        {**MINIO, "aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    )
    assert (both.effective_s3_key, both.effective_s3_secret) == ("key", "secret")
    minio = Settings.model_validate(MINIO)
    assert (minio.effective_s3_key, minio.effective_s3_secret) == ("someone", "something")


def test_the_duckdb_endpoint_follows_that_of_s3() -> None:
    assert Settings().effective_duckdb_endpoint == "minio:9000"
    assert Settings.model_validate(MINIO).effective_duckdb_endpoint == "localhost:9000"
    assert Settings(duckdb_s3_endpoint="there:1").effective_duckdb_endpoint == "there:1"


def test_a_needed_value_is_asked_for_by_name() -> None:
    assert Settings(topic="a").need("topic") == "a"
    with pytest.raises(SettingsError, match="TOPIC is not set") as caught:
        Settings().need("topic")
    assert "headgate config select" in caught.value.fix


def test_secrets_show_neither_in_print_nor_in_json() -> None:
    s = Settings.model_validate(
        {**MINIO, "connect_token": "canary", "ops_store_url": "postgresql://me:canary@host/ops"}
    )
    shown = f"{s!r} {s} {s.model_dump_json()} {s.model_dump(mode='json')}"
    assert "canary" not in shown
    assert "something" not in shown
    assert MASK in shown


# Where values come from


def test_the_constructor_reads_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPIC", "from.the.shell")
    monkeypatch.setenv("BROKER", "kafka")
    assert (Settings().topic, Settings().broker) == (None, "embedded")


def test_without_an_active_profile_the_embedded_one_holds(project: Path) -> None:
    s = load_settings(project, {})
    assert s.broker == "embedded"
    assert s.origin("broker") == "profile env/embedded.env"
    assert s.origin("http_timeout") == "default"


def test_the_environment_beats_running_services_which_beat_the_profile(project: Path) -> None:
    active(project, "CONNECT_URL=profile\nSPARK_UI_URL=profile\nTOPIC=profile\n")
    (project / ".headgate").mkdir()
    (project / ".headgate" / "endpoints.env").write_text("CONNECT_URL=run\nSPARK_UI_URL=run\n")
    s = load_settings(project, {"CONNECT_URL": "shell"})
    assert (s.connect_url, s.spark_ui_url, s.topic) == ("shell", "run", "profile")
    origins = [s.origin(field) for field in ("connect_url", "spark_ui_url", "topic")]
    assert origins == ["environment", "running services", "profile .env"]


def test_what_a_profile_says_of_its_dataset_is_not_said_of_another(project: Path) -> None:
    s = load_settings(project, {"DATASET": "orders"})
    assert (s.topic, s.dlq_topic) == ("orders.events", "orders.events.dlq")
    assert s.data_file == project / "data" / "orders.parquet"
    assert s.schema_file == project / "schemas" / "orders.json"
    assert (s.origin("dataset"), s.origin("topic")) == ("environment", "DATASET=orders")
    given = load_settings(project, {"DATASET": "orders", "TOPIC": "shop"})
    assert (given.topic, given.dlq_topic) == ("shop", "orders.events.dlq")
    same = load_settings(project, {"DATASET": "taxi"})
    assert (same.topic, same.origin("topic")) == ("taxi.raw_trips", "profile env/embedded.env")
    active(project, "TOPIC=any\n")
    assert load_settings(project, {"DATASET": "orders"}).topic == "any"


def test_every_dataset_has_topics_and_files_of_its_own(project: Path) -> None:
    s = load_settings(project, {})
    assert s.topics_of("taxi") == {"TOPIC": "taxi.raw_trips", "DLQ_TOPIC": "taxi.raw_trips.dlq"}
    assert s.topics_of("orders") == {"TOPIC": "orders.events", "DLQ_TOPIC": "orders.events.dlq"}
    assert s.data_file_of("taxi") == s.data_file
    assert s.data_file_of("orders") == project / "data" / "orders.parquet"
    assert s.schema_file_of("orders") == project / "schemas" / "orders.json"
    assert Settings(root=project).topics_of("taxi") == {}


def test_an_embedded_broker_left_running_does_not_replace_the_chosen_one(project: Path) -> None:
    active(project, "BROKER=kafka\nBOOTSTRAP_SERVERS=there:9092\n")
    (project / ".headgate").mkdir()
    (project / ".headgate" / "endpoints.env").write_text("BOOTSTRAP_SERVERS=localhost:1\n")
    assert load_settings(project, {}).bootstrap_servers == "there:9092"


def test_addresses_that_a_killed_supervisor_left_behind_do_not_count(project: Path) -> None:
    home = project / ".headgate"
    home.mkdir()
    (home / "endpoints.env").write_text("BOOTSTRAP_SERVERS=localhost:1\n")
    with (home / "local.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert load_settings(project, {}).bootstrap_servers == "localhost:1"
    assert load_settings(project, {}).bootstrap_servers is None


def test_running_services_are_found_in_another_home(project: Path) -> None:
    (project / "state").mkdir()
    (project / "state" / "endpoints.env").write_text("CONNECT_URL=sc://localhost:1\n")
    s = load_settings(project, {"HEADGATE_HOME": "state"})
    assert (s.home, s.connect_url) == (project / "state", "sc://localhost:1")


def test_comments_quotes_and_blanks_in_a_profile(project: Path) -> None:
    text = (
        "\ufeff# a comment\r\n\r\nexport TOPIC = a.topic   # after a blank\r\n"
        "MINIO_ROOT_PASSWORD='with # and blank '\nDATASET=a#b\nDLQ_TOPIC= # nothing\n"
    )
    s = load_settings(active(project, text), {})
    assert (s.topic, s.minio_root_password) == ("a.topic", "with # and blank")
    assert (s.dataset, s.dlq_topic) == ("a#b", None)


def test_an_empty_value_means_the_default(project: Path) -> None:
    active(project, "MODE=streaming_bronze\nDLQ_MAX=\n")
    s = load_settings(project, {"MODE": " "})
    assert (s.mode, s.dlq_max) == ("batch", 0)


def test_unknown_names_are_ignored(project: Path) -> None:
    assert load_settings(active(project, "NO_SUCH_THING=1\nTOPIC=a\n"), {}).topic == "a"


def test_faults_name_file_and_line(project: Path) -> None:
    active(project, "TOPIC=a\nBROKER=none\nthis is no assignment\nSTORAGE=gcs\n")
    with pytest.raises(InvalidSettingsError) as caught:
        load_settings(project, {"MODE": "fast"})
    places = {(f.field, f.file, f.line) for f in caught.value.faults}
    assert places == {
        ("line", ".env", 3),
        ("BROKER", ".env", 2),
        ("WAREHOUSE", ".env", None),
        ("MODE", "environment", None),
    }


@pytest.mark.parametrize("profile", sorted((ROOT / "env").glob("*.env")), ids=lambda p: p.stem)
def test_every_shipped_profile_loads(project: Path, profile: Path) -> None:
    s = load_settings(active(project, profile.read_text("utf-8")), {})
    assert s.need("topic")
    assert s.mode == "batch"


def test_the_local_profile_is_that_of_the_documents(project: Path) -> None:
    s = load_settings(active(project, (ROOT / "env" / "local.env").read_text("utf-8")), {})
    assert (s.broker, s.storage, s.catalog, s.mode) == ("redpanda", "minio", "hadoop", "batch")


def test_the_example_loads(project: Path) -> None:
    assert load_settings(active(project, (ROOT / ".env.example").read_text("utf-8")), {})


def test_every_field_is_described_for_people() -> None:
    assert {d.field for d in VARIABLES} == set(Settings.model_fields) - {"root"}
    assert all(d.help.endswith(".") and d.group for d in VARIABLES)
