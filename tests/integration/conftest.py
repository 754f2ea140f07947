"""What integration tests share: one private broker a session, on free ports, gone at the end."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.pipeline import JVM, ROOT, Pipeline, create_topic
from tests.support.postgres import create_database
from tests.support.services import RunningBroker, start_broker, start_service, start_session_service

from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.runtime.bundles import bundle_folder
from headgate.core.runtime.java_build import build_plugins
from headgate.filters.events.database import Place
from headgate.local.cassandra import CassandraServer
from headgate.local.connect import DEBEZIUM, ConnectServer
from headgate.local.postgres import PostgresServer
from headgate.local.registry import RegistryServer
from headgate.local.service import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """py4j closes the sockets of `collect` only when they are garbage: any later test may see it."""
    for item in items:
        if "integration" in item.path.parts:
            for warning in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{warning}"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """The session's broker. A run that is killed takes it along: the kernel ends it."""
    running = start_broker(tmp_path_factory.mktemp("the broker"))
    yield running
    running.kill()


@pytest.fixture(scope="session")
def second_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running = start_broker(tmp_path_factory.mktemp("the second broker"))
    yield running
    running.kill()


@pytest.fixture
def private_broker(second_broker: RunningBroker) -> RunningBroker:
    """A broker that tests kill; one that was left dead is started again."""
    if second_broker.child.exit_code is not None:
        second_broker.restart()
    return second_broker


@pytest.fixture(scope="session")
def cassandra(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running[CassandraServer]]:
    """The session's Cassandra. A test that kills it starts it again."""
    folder = tmp_path_factory.mktemp("the cassandra")
    yield from start_session_service(lambda: CassandraServer(folder))


@pytest.fixture(scope="session")
def connect(
    broker: RunningBroker,
    postgres: Running[PostgresServer],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Running[ConnectServer]]:
    """The session's Kafka Connect on its broker: our plugins, and Debezium for its PostgreSQL.

    A test file deletes the connectors that it deploys.
    """
    plugins = build_plugins(Path("java/connect-plugins")).folder
    folder = tmp_path_factory.mktemp("the connect")
    yield from start_session_service(
        lambda: ConnectServer(
            folder,
            broker.bootstrap,
            plugins,
            secrets={"POSTGRES_PASSWORD": postgres.service.password},
            more_plugins=(bundle_folder(DEBEZIUM),),
        )
    )


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running[RegistryServer]]:
    """The session's schema registry. A test that kills it starts it again."""
    folder = tmp_path_factory.mktemp("the registry")
    yield from start_session_service(lambda: RegistryServer(folder))


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running[PostgresServer]]:
    """The session's PostgreSQL. A test that kills it starts it again."""
    folder = tmp_path_factory.mktemp("the postgres")
    with start_service(lambda: PostgresServer(folder)) as server:
        yield server


@pytest.fixture(scope="module")
def events_place(request: pytest.FixtureRequest, postgres: Running[PostgresServer]) -> Place:
    """The events' database of one test file, new and empty."""
    return create_database(postgres.service, request.path.stem)


@pytest.fixture(scope="session")
def lake_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the shared session's catalog and warehouse are."""
    # With a blank, as in many a path: whatever runs on this home has to cope with it.
    return tmp_path_factory.mktemp("the lake")


@pytest.fixture(scope="session")
def spark(lake_home: Path) -> Iterator[SparkSession]:
    """The one session of this test run."""
    from headgate.core.engine.session import start_session, stop_session

    session = start_session(Settings(root=lake_home, home=lake_home, **JVM))
    yield session
    stop_session(session)


_numbers = itertools.count()


@contextmanager
def make_pipelines(
    spark: SparkSession, broker: RunningBroker, lake_home: Path, folder: Path
) -> Iterator[Callable[..., Pipeline]]:
    """Makes pipelines in this folder and closes their stores at the end."""
    made: list[Pipeline] = []

    def make(partitions: int = 2, largest: int = 1_048_588, **declared: str) -> Pipeline:
        name = f"p{next(_numbers)}"
        root = folder / name
        shutil.copytree(ROOT / "datasets" / "_template", root / "datasets" / "_template")
        create_topic(broker.bootstrap, name, partitions, largest)
        create_topic(broker.bootstrap, f"{name}-dlq", 1, 1_048_588)
        settings = Settings(
            root=root,
            home=lake_home,
            dataset=name,
            topic=name,
            dlq_topic=f"{name}-dlq",
            bootstrap_servers=broker.bootstrap,
            ops_store_url=f"sqlite:///{root}/ops.db",
            **JVM,
        )
        pipeline = Pipeline(name, settings, OpsStore.open(settings.ops_store_url), spark)
        pipeline.declare(**declared)
        made.append(pipeline)
        return pipeline

    try:
        yield make
    finally:
        for pipeline in made:
            pipeline.store.close()


@pytest.fixture
def new_pipeline(
    spark: SparkSession, broker: RunningBroker, lake_home: Path, tmp_path: Path
) -> Iterator[Callable[..., Pipeline]]:
    """Makes pipelines; `largest` is the topic's limit for a message."""
    with make_pipelines(spark, broker, lake_home, tmp_path) as make:
        yield make


@pytest.fixture
def pipeline(new_pipeline: Callable[..., Pipeline]) -> Pipeline:
    return new_pipeline()


@pytest.fixture(scope="module")
def new_module_pipeline(
    spark: SparkSession,
    broker: RunningBroker,
    lake_home: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Pipeline]]:
    """Makes pipelines that the tests of one file share."""
    with make_pipelines(spark, broker, lake_home, tmp_path_factory.mktemp("pipelines")) as make:
        yield make


@pytest.fixture(scope="module")
def module_pipeline(new_module_pipeline: Callable[..., Pipeline]) -> Pipeline:
    """One pipeline for the tests of a file that take turns on it."""
    return new_module_pipeline()
