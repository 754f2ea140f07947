"""Run dbt in a child process over the current versions of the silver tables, and report what it built.

`build`, `test` and `docs` are the entry points. The process is gone however the caller ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import duckdb
import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from headgate.config.settings import Settings
from headgate.core.lake.catalog import TableLocation
from headgate.core.lake.duckdb_reader import (
    Lake,
    extension_file,
    extensions,
    s3_endpoint,
    url_style,
)
from headgate.core.runtime.java import cache_dir
from headgate.core.sql.script import PLACEHOLDERS
from headgate.declarations.project import available_datasets, find_dataset
from headgate.errors import ConflictError, DeclarationError, OperationError, UnavailableError
from headgate.pipeline.compile.dbt_files import variable_stem
from headgate.pipeline.dbt.models import CountRows, DbtReport, Scope, make_report, read_results
from headgate.pipeline.loader import load_dataset

CHILD = "headgate.pipeline.dbt.child"
FINISHED = frozenset({"LogModelResult", "LogTestResult", "LogSeedResult", "LogSkipBecauseError"})


@dataclass(frozen=True)
class Step:
    """One model, seed or test that dbt has finished."""

    done: int
    total: int | None
    name: str
    status: str


@dataclass(frozen=True)
class Outcome:
    """How the process ended, and what dbt complained about."""

    exit_code: int
    timed_out: bool
    complaints: tuple[str, ...]


Watch = Callable[[Step], None]


def unwatched(step: Step) -> None:
    """For callers that need no progress."""


def run_dbt(
    commands: Sequence[Sequence[str]],
    given: Mapping[str, str],
    scope: Scope,
    project: Path,
    environ: Mapping[str, str],
    watch: Watch,
    timeout: float | None,
) -> Outcome:
    """The commands one after the other, up to the first that fails."""
    process = subprocess.Popen(
        [sys.executable, "-m", CHILD, told(commands, given, scope)],
        cwd=project,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with _ended(process, timeout) as timed_out:
        complaints = _follow(process.stdout or (), watch)
    return Outcome(process.returncode, timed_out.is_set(), tuple(complaints))


@contextmanager
def _ended(process: subprocess.Popen[str], timeout: float | None) -> Generator[threading.Event]:
    """However the block is left, the process is gone after it."""
    timed_out = threading.Event()

    def give_up() -> None:
        timed_out.set()
        process.kill()

    timer = threading.Timer(timeout or threading.TIMEOUT_MAX, give_up)
    timer.daemon = True
    timer.start()
    try:
        with process:
            try:
                yield timed_out
            except BaseException:
                process.kill()
                raise
    finally:
        timer.cancel()


class _NodeInfo(BaseModel):
    model_config = ConfigDict(frozen=True)

    node_name: str = ""
    node_status: str = ""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True)

    node_info: _NodeInfo = _NodeInfo()
    node_count: int | None = None


class _Info(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    level: str
    msg: str


class _Event(BaseModel):
    """A line of dbt's JSON log."""

    model_config = ConfigDict(frozen=True)

    info: _Info
    data: _Data = _Data()


def _follow(lines: Iterable[str], watch: Watch) -> list[str]:
    """Tells `watch` of each finished step; what dbt complains about is returned."""
    complaints: list[str] = []
    done, total = 0, None
    for line in lines:
        try:
            event = _Event.model_validate_json(line)
        except ValidationError:
            complaints.append(line.rstrip())
            continue
        total = event.data.node_count or total
        if event.info.name in FINISHED:
            done += 1
            watch(
                Step(done, total, event.data.node_info.node_name, event.data.node_info.node_status)
            )
        if event.info.level == "error":
            complaints.append(event.info.msg.strip())
    return [text for text in complaints if text]


def told(commands: Sequence[Sequence[str]], given: Mapping[str, str], scope: Scope) -> str:
    """What the process is to do, as its one argument."""
    quiet = ["--log-format", "json", "--log-format-file", "text", "--no-use-colors"]
    shared = [*quiet, "--no-use-colors-file", "--vars", orjson.dumps(given).decode()]
    document = {
        "commands": [[*command, *shared] for command in commands],
        "shared": shared,
        "active": scope.active,
        "tables": dict(scope.tables),
        "present": sorted(scope.present),
    }
    return orjson.dumps(document).decode()


def build(
    settings: Settings,
    dataset: str,
    select: Sequence[str] = (),
    watch: Watch = unwatched,
    *,
    full_refresh: bool = True,
) -> DbtReport:
    """`dbt deps`, then a build of what the dataset's silver table feeds."""
    refresh = ["--full-refresh"] if full_refresh else []
    # buildable: a test that also needs a model outside the selection is left out.
    tests = ["--indirect-selection", "buildable"]
    commands = [["deps"], ["build", *refresh, *tests, *_selection(select)]]
    return _reported("build", settings, dataset, commands, watch, None)


def test(
    settings: Settings,
    dataset: str,
    select: Sequence[str] = (),
    watch: Watch = unwatched,
) -> DbtReport:
    """`dbt test` over marts that were built before, given up after DBT_TEST_TIMEOUT."""
    if not marts_file(settings).is_file():
        raise UnavailableError(
            "the marts are not built yet",
            why=f"{marts_file(settings)} does not exist",
            fix="headgate dbt build",
        )
    commands = [["test", *_selection(select)]]
    return _reported("test", settings, dataset, commands, watch, settings.dbt_test_timeout)


def docs(settings: Settings, dataset: str, watch: Watch = unwatched) -> Path:
    """The documentation as one page that opens without a server."""
    _run(settings, scope_of(settings, dataset), [["docs", "generate", "--static"]], watch, None)
    return _target(settings) / "static_index.html"


def marts_file(settings: Settings) -> Path:
    """DuckDB names a database after its file: it must not be called as one of its schemas."""
    return settings.home / "dbt.duckdb"


def log_file(settings: Settings) -> Path:
    return settings.home / "dbt" / "logs" / "dbt.log"


def variables(locations: Mapping[str, TableLocation]) -> dict[str, str]:
    """What the sources ask for: the folder and the version of each table.

    Its text is a SQL literal and then a Python format string, hence the doubling.
    """
    return {
        f"{stem}_{name}": _in_source(value)
        for table, location in locations.items()
        for stem in (table.rpartition(".")[2], variable_stem(table))
        for name, value in (("folder", location.folder), ("version", location.version))
    }


def scope_of(settings: Settings, dataset: str) -> Scope:
    """The dataset among the others, and whose silver tables are there."""
    tables = silver_tables(settings, dataset)
    with Lake.open(settings) as lake:
        present = frozenset(table for table in tables.values() if lake.exists(table))
    return Scope(dataset, tables, present)


def silver_tables(settings: Settings, dataset: str) -> dict[str, str]:
    """Every dataset's silver table; another dataset's faults are no concern of this one."""
    found = {dataset: _silver_table(settings, dataset)}
    for name in available_datasets(settings.root):
        with suppress(DeclarationError):
            found.setdefault(name, _silver_table(settings, name))
    return found


def _silver_table(settings: Settings, name: str) -> str:
    """No topic is asked for: its variable may be another dataset's."""
    return load_dataset(find_dataset(settings.root, name), PLACEHOLDERS).value.silver_table


def environment(settings: Settings, base: Mapping[str, str]) -> dict[str, str]:
    """What profiles.yml and dbt itself read; nothing is fetched and nothing is reported home."""
    work = settings.home / "dbt"
    files = {f"HEADGATE_DUCKDB_{n.upper()}": str(extension_file(n)) for n in extensions(settings)}
    return {
        **base,
        **files,
        **({} if settings.storage == "local" else _s3(settings)),
        "HEADGATE_MARTS": str(marts_file(settings)),
        "HEADGATE_DUCKDB_EXTENSIONS": str(cache_dir(base) / "duckdb"),
        "HEADGATE_DBT_PACKAGES": str(work / "packages"),
        "DBT_PROFILES_DIR": str(_project(settings)),
        "DBT_PROJECT_DIR": str(_project(settings)),
        "DBT_TARGET_PATH": str(_target(settings)),
        "DBT_LOG_PATH": str(log_file(settings).parent),
        "DO_NOT_TRACK": "1",
    }


def _reported(
    command: str,
    settings: Settings,
    dataset: str,
    commands: Sequence[Sequence[str]],
    watch: Watch,
    timeout: float | None,
) -> DbtReport:
    # Results of an earlier run must not speak for one that never got to write its own.
    (_target(settings) / "run_results.json").unlink(missing_ok=True)
    scope = scope_of(settings, dataset)
    try:
        _run(settings, scope, commands, watch, timeout)
    except OperationError as error:
        if read_results(_target(settings)) is None:
            raise error
    found = read_results(_target(settings))
    if found is None:
        raise OperationError("dbt wrote no results", fix=f"the log is {log_file(settings)}")
    with _row_counter(marts_file(settings)) as count_rows:
        return make_report(command, *found, count_rows, scope)


def _run(
    settings: Settings,
    scope: Scope,
    commands: Sequence[Sequence[str]],
    watch: Watch,
    timeout: float | None,
) -> None:
    with Lake.open(settings) as lake:
        # The active table must be there; the others count only where they are.
        wanted = sorted(scope.present | {scope.table})
        given = variables({table: lake.location(table) for table in wanted})
    _target(settings).mkdir(parents=True, exist_ok=True)
    _claim(marts_file(settings))
    environ = environment(settings, os.environ)
    outcome = run_dbt(commands, given, scope, _project(settings), environ, watch, timeout)
    if outcome.timed_out:
        raise UnavailableError(
            f"dbt took longer than {timeout:g} s", fix="raise DBT_TEST_TIMEOUT, or try again"
        )
    if outcome.exit_code:
        raise OperationError(
            "dbt failed",
            why="\n".join(outcome.complaints[-8:]),
            fix=f"the log is {log_file(settings)}",
        )


def _claim(marts: Path) -> None:
    """Refuse at once when someone has the marts open: DuckDB lets in one process at a time."""
    if not marts.is_file():
        return
    try:
        duckdb.connect(str(marts)).close()
    except duckdb.IOException as error:
        raise ConflictError(
            "the marts are in use",
            why=str(error).partition(". See also")[0],
            fix="close what has them open (a notebook, another dbt run), then try again",
        ) from error


def _selection(select: Sequence[str]) -> list[str]:
    return ["--select", *select] if select else []


def _s3(settings: Settings) -> dict[str, str]:
    return {
        "HEADGATE_DBT_TARGET": "s3",
        "DBT_ENV_SECRET_S3_KEY": settings.effective_s3_key or "",
        "DBT_ENV_SECRET_S3_SECRET": settings.effective_s3_secret or "",
        "AWS_REGION": settings.aws_region,
        "DUCKDB_S3_ENDPOINT": s3_endpoint(settings),
        "DUCKDB_S3_URL_STYLE": url_style(settings),
        "DUCKDB_S3_USE_SSL": str(settings.duckdb_s3_use_ssl).lower(),
    }


@contextmanager
def _row_counter(marts: Path) -> Generator[CountRows]:
    """Counts relations; what was never built has no count."""
    if not marts.is_file():
        yield lambda _: None
        return
    with duckdb.connect(str(marts), read_only=True) as connection:

        def count(relation: str) -> int | None:
            try:
                rows = connection.execute(f"SELECT count(*) FROM {relation}").fetchall()
            except duckdb.CatalogException:
                return None
            return cast("int", rows[0][0])

        yield count


def _in_source(value: str) -> str:
    return value.replace("'", "''").replace("{", "{{").replace("}", "}}")


def _project(settings: Settings) -> Path:
    return settings.root / "dbt"


def _target(settings: Settings) -> Path:
    return settings.home / "dbt" / "target"
