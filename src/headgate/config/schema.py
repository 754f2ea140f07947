"""The schema of all settings: each variable with its type and default, and the rules between variables.

The fields of `Values` are the only list of variables: the reference, `config show` and the checks all
read it. A rule judges values against each other and names what to write instead; rules that read
a value which is already refused stay silent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from headgate.config.reference import Described, Finding, Variable, describe, value_finding

MINIO_ENDPOINT = re.compile(r"minio|localhost|127\.0\.0\.1|:9000\b")
SCHEMES = {
    "minio": ("s3a://", "s3://"),
    "aws_s3": ("s3a://", "s3://"),
    "gcs": ("gs://",),
    "azure": ("abfss://", "abfs://"),
}
EXAMPLE_WAREHOUSE = {
    "minio": "s3a://warehouse/",
    "aws_s3": "s3a://your-bucket/warehouse/",
    "gcs": "gs://your-bucket/warehouse/",
    "azure": "abfss://your-container@your-account.dfs.core.windows.net/warehouse/",
}

NAME = "letters, digits, dots, dashes and underscores"
SIZE = "a number followed by k, m, g or t"
ADDRESS = "`host:port` or `unix:///path`"
PUSH_URL = "`http://…` or `https://…`"
SERVICES = "any of cassandra, postgres, connect, registry and cdc, with commas"
DURATION = "a length such as `20 SECONDS` or `10 MINUTES`"
CLAIM = "the name of a claim"
SIGNATURES = "algorithms with public keys (RS, ES, PS, EdDSA), with commas"
MASTER = "`local[…]`, `spark://…`, `yarn` or `k8s://…`"

Broker = Literal["embedded", "redpanda", "kafka"]
Catalog = Literal["jdbc", "hadoop", "rest"]
Storage = Literal["local", "minio", "aws_s3", "gcs", "azure"]
Mode = Literal["batch", "streaming_bronze", "streaming_silver"]
GeneratorMode = Literal["burst", "realtime", "batch"]
Topic = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
Port = Annotated[int, Field(ge=0, le=65535)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Address = Annotated[str, Field(pattern=r"^(unix:///.+|[^/\s]+:[0-9]{1,5})$")]
PushUrl = Annotated[str, Field(pattern=r"^https?://[^\s]+$")]
Memory = Annotated[str, Field(pattern=r"^[1-9][0-9]*[kmgtKMGT]$")]
Embedded = Annotated[
    str,
    Field(pattern=r"^(?:(?:^|\s*,\s*)(?:cassandra|postgres|connect|registry|cdc))+$"),
]
Length = Annotated[str, Field(pattern=r"(?i)^[1-9][0-9]{0,8} +(SECOND|MINUTE|HOUR|DAY)S?$")]
# No shared secrets and no `none`: whoever may check a token could otherwise write one.
Algorithms = Annotated[
    str, Field(pattern=r"^(?:(?:^|\s*,\s*)(?:(?:RS|ES|PS)(?:256|384|512)|EdDSA))+$")
]
ClaimName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:/-]{1,100}$")]
Master = Annotated[str, Field(pattern=r"^(local(\[[^\]]+\])?|spark://.+|yarn|k8s://.+)$")]


def default_warehouse(storage: str, home: Path) -> str:
    if storage == "local":
        return str(home / "warehouse")
    return EXAMPLE_WAREHOUSE["minio"] if storage == "minio" else ""


def default_catalog_uri(catalog: str, home: Path) -> str | None:
    return f"jdbc:sqlite:{home}/catalog.db" if catalog == "jdbc" else None


class Values(BaseModel):
    """All variables with their types and defaults, each checked on its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    root: Path = Path()

    broker: Annotated[Broker, Variable("Where the topics live.", "Axes")] = "embedded"
    catalog: Annotated[Catalog, Variable("How Iceberg finds its tables.")] = "jdbc"
    storage: Annotated[Storage, Variable("Where the tables' files live.")] = "local"
    mode: Annotated[Mode, Variable("Batch runs end; streaming runs go on.")] = "batch"
    spark_master: Annotated[Master, Variable("Where Spark runs.", form=MASTER)] = "local[*]"

    dataset: Annotated[str | None, Variable("The folder under `datasets/`.", "Dataset")] = None
    topic: Annotated[Topic | None, Variable("The topic events are sent to.", form=NAME)] = None
    dlq_topic: Annotated[Topic | None, Variable("The topic of dead letters.", form=NAME)] = None
    dlq_max: Annotated[Count, Variable("How many dead letters validation tolerates.")] = 0

    host_data_dir: Annotated[
        str, Variable("The folder that the generator calls `/data/`.", "Source data")
    ] = "../data"
    data_path: Annotated[str | None, Variable("The Parquet file, as `/data/name.parquet`.")] = None
    max_events: Annotated[Count, Variable("How many events to send; 0 sends all.")] = 0
    generator_mode: Annotated[GeneratorMode, Variable("How fast events are sent.")] = "burst"
    generator_rate: Annotated[int, Field(ge=1), Variable("Events per second in realtime mode.")] = (
        5000
    )
    validate_schema: Annotated[
        bool, Variable("Check each row against the JSON Schema before it is sent.")
    ] = False
    schema_path: Annotated[str | None, Variable("The JSON Schema, as `/schemas/name.json`.")] = None

    home: Annotated[
        Path, Variable("All local state.", "Places", "`.headgate` in the project", "HEADGATE_HOME")
    ] = Field(default_factory=lambda data: cast("Path", data["root"]) / ".headgate")
    warehouse: Annotated[
        str,
        Variable(
            "The tables' root.", default="`<HEADGATE_HOME>/warehouse`, MinIO `s3a://warehouse/`"
        ),
    ] = Field(default_factory=lambda data: default_warehouse(data["storage"], data["home"]))
    catalog_uri: Annotated[
        str | None,
        Variable(
            "The catalog's address.", default="jdbc: `jdbc:sqlite:<HEADGATE_HOME>/catalog.db`"
        ),
    ] = Field(default_factory=lambda data: default_catalog_uri(data["catalog"], data["home"]))
    ops_store_url: Annotated[
        str, Variable("The ops store's database.", default="`sqlite:///<HEADGATE_HOME>/ops.db`")
    ] = Field(default_factory=lambda data: f"sqlite:///{data['home']}/ops.db")

    s3_endpoint: Annotated[str | None, Variable("The S3 API's URL.", "Object storage")] = None
    s3_use_ssl: Annotated[bool, Variable("Whether that URL is https.")] = False
    s3_path_style: Annotated[bool, Variable("Bucket in the path, as MinIO needs it.")] = True
    minio_root_user: Annotated[str | None, Variable("MinIO's user.")] = None
    minio_root_password: Annotated[str | None, Variable("MinIO's password.", secret=True)] = None
    aws_access_key_id: Annotated[str | None, Variable("Leave out where roles give access.")] = None
    aws_secret_access_key: Annotated[
        str | None, Variable("Leave out where roles give access.", secret=True)
    ] = None
    aws_region: Annotated[str, Variable("The buckets' region.")] = "us-east-1"
    duckdb_s3_endpoint: Annotated[
        str | None, Variable("host:port for DuckDB, no scheme.", default="that of `S3_ENDPOINT`")
    ] = None
    duckdb_s3_use_ssl: Annotated[bool, Variable("Whether DuckDB uses https.")] = False

    bootstrap_servers: Annotated[
        str | None, Variable("The broker's host:port; the embedded one sets it.", "Services")
    ] = None
    connect_url: Annotated[str | None, Variable("Spark Connect; the engine sets it.")] = None
    connect_token: Annotated[
        str | None, Variable("Spark Connect's token; the engine sets it.", secret=True)
    ] = None
    spark_ui_url: Annotated[str | None, Variable("The Spark UI; the engine sets it.")] = None
    kafka_port: Annotated[Port, Variable("Port of the embedded broker, if free.")] = 9092
    connect_port: Annotated[Port, Variable("Port of Spark Connect, if free.")] = 15002
    spark_ui_port: Annotated[Port, Variable("Port of the Spark UI, if free.")] = 4040
    jdbc_port: Annotated[
        Port | None, Variable("Port of JDBC on this machine, without a password; not set: none.")
    ] = None
    metrics_url: Annotated[str | None, Variable("Prometheus text; the engine sets it.")] = None
    metrics_port: Annotated[Port, Variable("Port of that text, if free.")] = 9249
    spark_driver_memory: Annotated[Memory, Variable("Heap of the engine.", form=SIZE)] = "2g"
    spark_java_options: Annotated[str, Variable("More options of the engine's JVM.")] = ""

    local_services: Annotated[
        Embedded | None,
        Variable("What `local up` starts besides broker and engine.", form=SERVICES),
    ] = None
    cassandra_contact_points: Annotated[
        str | None, Variable("Cassandra's hosts, with commas; the embedded one sets it.")
    ] = None
    cassandra_port: Annotated[
        Port, Variable("Cassandra's port; the embedded one takes it if free.")
    ] = 9042
    cassandra_local_dc: Annotated[
        str, Variable("The data centre of Cassandra whose nodes are asked.")
    ] = "datacenter1"
    cassandra_user: Annotated[str | None, Variable("Leave out where none is asked for.")] = None
    cassandra_password: Annotated[
        str | None, Variable("Leave out where none is asked for.", secret=True)
    ] = None
    kafka_connect_url: Annotated[
        PushUrl | None,
        Variable("Kafka Connect's REST; the embedded one sets it.", form=PUSH_URL),
    ] = None
    kafka_connect_metrics_url: Annotated[
        PushUrl | None,
        Variable("Its Prometheus text; the embedded one sets it.", form=PUSH_URL),
    ] = None
    kafka_connect_port: Annotated[Port, Variable("Port of the embedded Connect, if free.")] = 8083
    schema_registry_url: Annotated[
        PushUrl | None,
        Variable("The registry's Confluent API; the embedded one sets it.", form=PUSH_URL),
    ] = None
    schema_registry_port: Annotated[Port, Variable("Port of the embedded registry, if free.")] = (
        8081
    )

    trigger_seconds: Annotated[
        Seconds, Variable("Seconds between two batches of a stream.", "Streams")
    ] = 10
    max_offsets_per_batch: Annotated[
        int, Field(ge=1), Variable("Offsets that a batch reads at most, so that a backlog fits.")
    ] = 1_000_000

    reconcile_window: Annotated[
        Length | None,
        Variable(
            "Instead of the declared window: how far both sides of a pair may lie apart.",
            "Reconciliation",
            form=DURATION,
        ),
    ] = None
    reconcile_grace: Annotated[
        Length | None, Variable("Instead of the declared grace after the window.", form=DURATION)
    ] = None
    reconcile_horizon: Annotated[
        Length | None, Variable("Instead of the declared horizon of the state.", form=DURATION)
    ] = None

    postgres_host: Annotated[
        str | None,
        Variable("PostgreSQL of the events; the embedded one sets it.", "Events and filters"),
    ] = None
    postgres_port: Annotated[
        Port, Variable("PostgreSQL's port; the embedded one takes it if free.")
    ] = 5432
    postgres_user: Annotated[str, Variable("Who writes the events.")] = "headgate"
    postgres_password: Annotated[
        str | None, Variable("Of that user; the embedded one makes its own.", secret=True)
    ] = None
    postgres_db: Annotated[str, Variable("The database of the events.")] = "events"
    filter_source_topic: Annotated[
        Topic, Variable("The topic of changes that filters judge.", form=NAME)
    ] = "raw-event-headers"
    api_port: Annotated[Port, Variable("Port of `headgate serve`, if free.")] = 8080
    api_url: Annotated[
        PushUrl | None,
        Variable("The API that commands ask.", name="HEADGATE_API_URL", form=PUSH_URL),
    ] = None
    api_key: Annotated[
        str | None, Variable("The key they show it.", name="HEADGATE_API_KEY", secret=True)
    ] = None
    approval_hours: Annotated[Seconds, Variable("Hours after which an approval expires.")] = 72
    git_repository: Annotated[
        str | None,
        Variable(
            "A git repository to pull accepted filters from and push them to.",
            default="none: only the one in HEADGATE_HOME",
        ),
    ] = None
    git_branch: Annotated[str, Variable("The branch they are committed to.")] = "main"
    jwt_issuer: Annotated[str | None, Variable("Whose tokens are taken; not set: none.")] = None
    jwt_audience: Annotated[str | None, Variable("For whom they must be made out.")] = None
    jwt_jwks: Annotated[str | None, Variable("The issuer's keys: a URL or a file.")] = None
    jwt_public_key: Annotated[str | None, Variable("Instead of those: a PEM file.")] = None
    jwt_algorithms: Annotated[
        Algorithms, Variable("How tokens may be signed.", form=SIGNATURES)
    ] = "RS256,ES256"
    jwt_name_claim: Annotated[
        ClaimName,
        Variable("The claim that is a person's name, such as `sub` or `email`.", form=CLAIM),
    ] = "sub"

    confluent_cloud_api_key: Annotated[
        str | None, Variable("Who deploys filters to Flink there.", "Confluent Cloud")
    ] = None
    confluent_cloud_api_secret: Annotated[
        str | None, Variable("The secret of that key.", secret=True)
    ] = None
    confluent_organization_id: Annotated[
        str | None, Variable("The organisation; its API asks for it.")
    ] = None
    confluent_environment_id: Annotated[str | None, Variable("As `env-…`.")] = None
    confluent_kafka_cluster_id: Annotated[str | None, Variable("As `lkc-…`.")] = None
    confluent_flink_compute_pool_id: Annotated[str | None, Variable("As `lfcp-…`.")] = None
    confluent_flink_api_endpoint: Annotated[
        PushUrl | None, Variable("Where statements are sent.", form=PUSH_URL)
    ] = None

    metrics_topic: Annotated[
        Topic, Variable("The topic that closed windows are sent to.", "Metrics", form=NAME)
    ] = "dq.metrics"
    dogstatsd_address: Annotated[
        Address | None, Variable("The agent that gets counts of closed windows.", form=ADDRESS)
    ] = None
    metrics_push_url: Annotated[
        PushUrl | None, Variable("Gets closed windows as a JSON array, by POST.", form=PUSH_URL)
    ] = None
    metrics_push_token: Annotated[
        str | None, Variable("Goes with them as `Authorization: Bearer`.", secret=True)
    ] = None
    grafana_admin_user: Annotated[str | None, Variable("Of the Grafana of `make obs-up`.")] = None
    grafana_admin_password: Annotated[
        str | None, Variable("Of the Grafana of `make obs-up`.", secret=True)
    ] = None

    bronze_completeness_ratio: Annotated[
        Share, Variable("Share of produced events that bronze must hold.", "Checks")
    ] = 0.95
    wait_for_silver_min_rows: Annotated[Count, Variable("Rows that end the wait.")] = 1
    wait_for_silver_timeout: Annotated[Seconds, Variable("Seconds to wait for silver.")] = 90
    wait_for_silver_poll: Annotated[Seconds, Variable("Seconds between two looks.")] = 5
    http_timeout: Annotated[Seconds, Variable("Seconds for one HTTP request.")] = 5
    docker_timeout: Annotated[Seconds, Variable("Seconds for one Docker command.")] = 15
    iceberg_query_timeout: Annotated[Seconds, Variable("Seconds for one count.")] = 90
    iceberg_metadata_timeout: Annotated[Seconds, Variable("Seconds for table metadata.")] = 30
    dlq_read_timeout: Annotated[Seconds, Variable("Seconds to count dead letters.")] = 10
    dbt_test_timeout: Annotated[Seconds, Variable("Seconds for dbt's tests.")] = 300

    project: Annotated[str, Variable("The name of this pipeline.", "Names")] = "headgate"
    compose_project_name: Annotated[
        str, Variable("Keeps two Docker stacks on one machine apart.")
    ] = "headgate"

    @field_validator("home", mode="after")
    @classmethod
    def _below_root(cls, home: Path, info: ValidationInfo) -> Path:
        return cast("Path", info.data["root"]) / home.expanduser()

    @field_validator("warehouse", mode="after")
    @classmethod
    def _local_below_root(cls, warehouse: str, info: ValidationInfo) -> str:
        if info.data.get("storage") != "local" or "://" in warehouse:
            return warehouse
        return str(cast("Path", info.data["root"]) / Path(warehouse).expanduser())


VARIABLES: tuple[Described, ...] = describe(Values)
NAMES: Mapping[str, str] = {d.field: d.name for d in VARIABLES}
SECRETS: frozenset[str] = frozenset(d.field for d in VARIABLES if d.secret)


def value_findings(errors: Sequence[ErrorDetails]) -> Iterator[Finding]:
    """What is wrong with single values."""
    by_field = {d.field: d for d in VARIABLES}
    for error in errors:
        field = str(error["loc"][0])
        if field in by_field:
            yield value_finding(error, by_field[field])
        else:
            yield Finding(field, "is no setting", "Take it out")


def contradictions(values: Values, bad: set[str]) -> Iterator[Finding]:
    """What is wrong between values; rules that read a value already refused stay silent."""
    for reads, judge in RULES:
        if not bad.intersection(reads):
            yield from judge(values)


def missing(values: Values, because: str, examples: Mapping[str, str]) -> Iterator[Finding]:
    for field, example in examples.items():
        if not getattr(values, field):
            name = NAMES[field]
            yield Finding(name, f"is not set, but {because} needs it", f"Write {name}={example}")


def broker_is_reachable(values: Values) -> Iterator[Finding]:
    if values.broker != "embedded":
        because = f"BROKER={values.broker}"
        yield from missing(values, because, {"bootstrap_servers": "localhost:19092"})


def catalog_has_address(values: Values) -> Iterator[Finding]:
    schemes = {"jdbc": ("jdbc:",), "rest": ("http://", "https://")}.get(values.catalog, ())
    example = {"jdbc": "jdbc:sqlite:<file>", "rest": "http://localhost:8181/catalog"}
    if not schemes:
        return
    if not values.catalog_uri:
        because = f"CATALOG={values.catalog}"
        yield from missing(values, because, {"catalog_uri": example[values.catalog]})
    elif not values.catalog_uri.startswith(schemes):
        what = f"must begin with {' or '.join(schemes)} when CATALOG={values.catalog}"
        yield Finding("CATALOG_URI", what, f"Write CATALOG_URI={example[values.catalog]}")


def minio_has_credentials(values: Values) -> Iterator[Finding]:
    if values.storage == "minio":
        wanted = {
            "s3_endpoint": "http://localhost:9000",
            "minio_root_user": "<user>",
            "minio_root_password": "<password>",
        }
        yield from missing(values, "STORAGE=minio", wanted)


def aws_is_not_minio(values: Values) -> Iterator[Finding]:
    endpoint = values.s3_endpoint or ""
    if values.storage == "aws_s3" and re.search(r"minio|localhost|127\.0\.0\.1|:9000\b", endpoint):
        what = f"is {endpoint}, a MinIO endpoint, but STORAGE=aws_s3"
        yield Finding("S3_ENDPOINT", what, "Take S3_ENDPOINT out, or write STORAGE=minio")


def aws_keys_are_a_pair(values: Values) -> Iterator[Finding]:
    pair = {"aws_access_key_id": "<key>", "aws_secret_access_key": "<secret>"}
    given = [field for field in pair if getattr(values, field)]
    if len(given) == 1:
        yield from missing(values, NAMES[given[0]], pair)


def endpoints_are_spelled_right(values: Values) -> Iterator[Finding]:
    endpoint, duckdb = values.s3_endpoint, values.duckdb_s3_endpoint
    if endpoint and not endpoint.startswith(("http://", "https://")):
        what = f"is {endpoint}, without http:// or https://"
        yield Finding("S3_ENDPOINT", what, f"Write S3_ENDPOINT=http://{endpoint}")
    elif endpoint and endpoint.startswith("https://") != values.s3_use_ssl:
        right = str(not values.s3_use_ssl).lower()
        what = f"contradicts S3_ENDPOINT={endpoint}"
        yield Finding("S3_USE_SSL", what, f"Write S3_USE_SSL={right}")
    if duckdb and "://" in duckdb:
        what = f"is {duckdb}, but DuckDB wants host:port without a scheme"
        fix = f"Write DUCKDB_S3_ENDPOINT={duckdb.split('://')[1]}"
        yield Finding("DUCKDB_S3_ENDPOINT", what, fix)


def warehouse_fits_storage(values: Values) -> Iterator[Finding]:
    storage, warehouse = values.storage, values.warehouse
    if storage == "local":
        if "://" in warehouse and not warehouse.startswith("file://"):
            what = f"is {warehouse}, but STORAGE=local keeps tables in a folder"
            yield Finding("WAREHOUSE", what, "Take WAREHOUSE out, or choose another STORAGE")
    elif not warehouse:
        yield from missing(values, f"STORAGE={storage}", {"warehouse": EXAMPLE_WAREHOUSE[storage]})
    elif not warehouse.startswith(SCHEMES[storage]):
        what = f"is {warehouse}, but STORAGE={storage} wants {' or '.join(SCHEMES[storage])}"
        yield Finding("WAREHOUSE", what, f"Write WAREHOUSE={EXAMPLE_WAREHOUSE[storage]}")


def data_path_is_below_data(values: Values) -> Iterator[Finding]:
    path = Path(values.data_path or "")
    if path.is_absolute() and not path.as_posix().startswith("/data/"):
        fix = f"Write HOST_DATA_DIR={path.parent} and DATA_PATH=/data/{path.name}"
        yield Finding("DATA_PATH", f"is {path}, but must begin with /data/", fix)


def schema_is_named(values: Values) -> Iterator[Finding]:
    if values.validate_schema:
        wanted = {"schema_path": "/schemas/<file>.json"}
        yield from missing(values, "VALIDATE_SCHEMA=true", wanted)


def dead_letters_have_their_own_topic(values: Values) -> Iterator[Finding]:
    if values.topic and values.topic == values.dlq_topic:
        what = f"is {values.topic}, the same as TOPIC"
        yield Finding("DLQ_TOPIC", what, f"Write DLQ_TOPIC={values.topic}.dlq")


RULES: tuple[tuple[tuple[str, ...], Callable[[Values], Iterator[Finding]]], ...] = (
    (("broker", "bootstrap_servers"), broker_is_reachable),
    (("catalog", "catalog_uri"), catalog_has_address),
    (("storage",), minio_has_credentials),
    (("storage",), aws_is_not_minio),
    ((), aws_keys_are_a_pair),
    (("s3_use_ssl",), endpoints_are_spelled_right),
    (("storage", "warehouse"), warehouse_fits_storage),
    ((), data_path_is_below_data),
    (("validate_schema",), schema_is_named),
    (("topic", "dlq_topic"), dead_letters_have_their_own_topic),
)
