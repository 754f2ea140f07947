"""`headgate filters check`, `compile`, `explain`, `consumer`: the verbs that need no API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.terminal.console import console, in_one_line, stderr_log_handler
from headgate.terminal.project import below

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.errors import Fault
    from headgate.filters.compile.matcher import Finding
    from headgate.filters.compile.spark_sql import CompiledFilter
    from headgate.filters.consumers.config import ConsumerConfig
    from headgate.filters.consumers.consumer import Consumed
    from headgate.filters.explain import ExplainedFilter


@dataclass(frozen=True)
class Checked:
    """What `filters check` found."""

    files: tuple[str, ...]
    filters: tuple[str, ...]
    faults: tuple[Fault, ...]
    findings: tuple[Finding, ...]
    passed: bool


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Findings count as faults.")
def filters_check(files: tuple[Path, ...], strict: bool) -> None:
    """Check filters, all of them or those given: every fault at once, each with its line.

    A finding is something that is valid but hardly meant: a filter that can match no event, every
    event, or only what another filter matches too. Nothing is run: no Spark, no broker.

    \b
    Examples:
      headgate filters check
      headgate filters check schemas/v1/filters/service-by-dealer-001.json --strict
      headgate -o json filters check
    """
    from headgate.config.settings import load_settings
    from headgate.errors import DeclarationError

    checked = check_files(load_settings(), files, strict=strict)
    if console.format != "text":
        console.data(checked)
    else:
        for finding in checked.findings:
            console.warn(finding.words)
    if checked.faults:
        raise DeclarationError(checked.faults)
    if not checked.passed:
        raise DeclarationError(list(_as_faults(checked.findings)))
    console.done(_words(checked))


def check_files(settings: Settings, files: tuple[Path, ...], *, strict: bool = False) -> Checked:
    """What is to be said of these documents; of all filters where none is given."""
    from headgate.errors import DeclarationError
    from headgate.filters.compile.matcher import findings_of
    from headgate.filters.loader import filter_files

    chosen = tuple(path.resolve() for path in files) or filter_files(settings.root)
    compiled: list[CompiledFilter] = []
    faults: list[Fault] = []
    for path in chosen:
        try:
            compiled.append(load_compiled(path))
        except DeclarationError as error:
            faults += error.faults
    faults += _misplaced(settings, chosen, compiled)
    findings = tuple(found for one in compiled for found in findings_of(one, compiled))
    return Checked(
        files=tuple(below(path, settings.root) for path in chosen),
        filters=tuple(one.id for one in compiled),
        faults=tuple(
            replace(fault, file=below(Path(fault.file), settings.root)) for fault in faults
        ),
        findings=findings,
        passed=not faults and not (strict and findings),
    )


def load_compiled(path: Path) -> CompiledFilter:
    """The filter in a file, compiled; its faults have their lines."""
    from headgate.errors import DeclarationError
    from headgate.filters.compile.spark_sql import compile_filter
    from headgate.filters.document_text import lines_of
    from headgate.filters.loader import filter_text, line_at, load_filter

    declared = load_filter(path)
    try:
        return compile_filter(declared, str(path))
    except DeclarationError as error:
        lines = lines_of(filter_text(path), [fault.field for fault in error.faults]).found
        placed = [replace(fault, line=line_at(lines, fault.field)) for fault in error.faults]
        raise DeclarationError(placed) from None


def _misplaced(
    settings: Settings, chosen: Sequence[Path], compiled: Sequence[CompiledFilter]
) -> Iterator[Fault]:
    """A filter's file bears its id, and no two filters write to one topic of their own accord."""
    from headgate.errors import Fault
    from headgate.filters.loader import FOLDER

    known = {one.id for one in compiled}
    for path in chosen:
        if path.parent == settings.root / FOLDER and path.stem not in known:
            ids = ", ".join(sorted(known)) or "none"
            what = f"no filter has the id `{path.stem}` (there are: {ids})"
            yield Fault(str(path), None, "/id", what, "Name the file after the filter's id.")


def _as_faults(findings: Sequence[Finding]) -> Iterator[Fault]:
    from headgate.errors import Fault

    for found in findings:
        yield Fault(found.filter, None, "/conditions", found.words, "Correct the conditions.")


def _words(checked: Checked) -> str:
    if not checked.files:
        return "there is no filter"
    noun = "filter" if len(checked.filters) == 1 else "filters"
    told = f", {len(checked.findings)} findings" if checked.findings else ""
    return f"{len(checked.filters)} {noun}, no faults{told}: {', '.join(checked.filters)}"


USUAL_BROKER = "localhost:9092"


@dataclass(frozen=True)
class CompiledText:
    """The SQL of one filter, filled with the settings."""

    filter: str
    revision: str
    sql_hash: str
    topic: str
    sql: str


@click.command()
@click.argument("filters", nargs=-1, metavar="[ID|FILE]...")
@click.option("--flink", is_flag=True, help="As Flink SQL for Confluent Cloud.")
@click.option("--write", is_flag=True, help="Write build/sql/filters/<id>.sql instead.")
def filters_compile(filters: tuple[str, ...], flink: bool, write: bool) -> None:
    """Compile filters to SQL and print it: two statements each, the sink and the insert.

    The Spark file runs in a plain spark-sql; the router asks the same of every record. Without an
    argument all filters are compiled.

    \b
    Examples:
      headgate filters compile service-by-dealer-001
      headgate filters compile service-by-dealer-001 --flink
      headgate filters compile --write
    """
    from headgate.config.settings import load_settings

    settings = load_settings()
    found = [compiled_text(settings, path, flink=flink) for path in chosen_files(settings, filters)]
    if not write:
        console.data(found, text="\n".join(text.sql for text in found).rstrip("\n"))
        return
    for text in found:
        console.done(f"written: {_written(settings, text, flink=flink)}")


def chosen_files(settings: Settings, filters: tuple[str, ...]) -> tuple[Path, ...]:
    """The files of these ids and paths; of all filters of the project where none is given."""
    from headgate.filters.loader import filter_files, find_filter

    if not filters:
        return filter_files(settings.root)
    return tuple(
        Path(name) if name.endswith(".json") else find_filter(settings.root, name)
        for name in filters
    )


def compiled_text(settings: Settings, path: Path, *, flink: bool = False) -> CompiledText:
    """The SQL of the filter in a file."""
    from headgate.core.sql.script import Template
    from headgate.filters.compile.flink import flink_sql
    from headgate.filters.compile.spark_sql import alone_sql
    from headgate.filters.loader import load_filter

    compiled = load_compiled(path)
    if flink:
        sql = flink_sql(load_filter(path))
    else:
        broker = settings.bootstrap_servers or USUAL_BROKER
        template = Template(f"{compiled.id}.sql", alone_sql(compiled))
        sql = template.render({"BOOTSTRAP_SERVERS": broker})
    return CompiledText(compiled.id, compiled.revision, compiled.sql_hash, compiled.topic, sql)


def _written(settings: Settings, text: CompiledText, *, flink: bool) -> Path:
    from headgate.config.env_files import write_atomically

    name = f"{text.filter}.flink.sql" if flink else f"{text.filter}.sql"
    path = settings.build_dir / "sql" / "filters" / name
    write_atomically(path, text.sql.encode())
    return path


@click.command()
@click.argument("filters", nargs=-1, metavar="[ID|FILE]...")
def filters_explain(filters: tuple[str, ...]) -> None:
    """Explain filters in words: which events they take and match, and where those go.

    The SQL of the conditions follows, and how many records each deployed revision judged and sent,
    from the ledger in the ops store. Nothing is run and the API is not asked: a file is enough.
    Without an argument all filters of the project are explained.

    \b
    Examples:
      headgate filters explain
      headgate filters explain service-by-dealer-001
      headgate filters explain schemas/v1/filters/service-by-dealer-001.json
      headgate -o json filters explain service-by-dealer-001
    """
    from headgate.config.settings import load_settings
    from headgate.filters.explain import explanation_lines
    from headgate.terminal.project import faults_below

    settings = load_settings()
    with faults_below(settings.root):
        explained = _explain_files(settings, chosen_files(settings, filters))
    texts = ("\n".join(map(in_one_line, explanation_lines(one))) for one in explained)
    console.data({"filters": explained}, text="\n\n".join(texts))


def _explain_files(settings: Settings, files: tuple[Path, ...]) -> list[ExplainedFilter]:
    """With counts where the ops store can be read, else without them and with a warning."""
    from headgate.core.ledger.ops_store import OpsStore
    from headgate.errors import HeadgateError

    try:
        store = OpsStore.open(settings.ops_store_url)
    except HeadgateError as error:
        console.warn(f"there are no counts: {error.what} ({error.why})")
        return [_explain_file(settings, path) for path in files]
    with store:
        return [_explain_file(settings, path, store) for path in files]


def _explain_file(settings: Settings, path: Path, store: OpsStore | None = None) -> ExplainedFilter:
    from headgate.filters.explain import explain_filter, read_counts
    from headgate.filters.loader import load_filter
    from headgate.terminal.project import below

    compiled = load_compiled(path)
    counts = read_counts(store, compiled.id, compiled.revision) if store else ()
    return explain_filter(load_filter(path), compiled, below(path, settings.root), counts)


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Stop at the topic's end.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The SQLite file of what was handled. Default: consumers/<group>.db in HEADGATE_HOME.",
)
def filters_consumer(config: Path, once: bool, state: Path | None) -> None:
    """Log each service event of a dealer's topic, and tell the sinks of it, once.

    Events of another dealer, or of none, are warned about and dropped. Offsets are committed after
    the sinks have kept what they were told; a record that comes again changes nothing.

    KAFKA_BOOTSTRAP_SERVERS, KAFKA_TOPIC, CONSUMER_GROUP_ID, KAFKA_API_KEY and KAFKA_API_SECRET
    count more than the file.

    \b
    Examples:
      headgate filters consumer consumers/dealer-001/consumer.yml
      headgate -o json filters consumer consumers/dealer-001/consumer.yml --once
    """
    import os

    from headgate.config.settings import load_settings
    from headgate.core.runtime.journal import interruption
    from headgate.filters.consumers.config import load_config
    from headgate.filters.consumers.consumer import DealerConsumer
    from headgate.filters.consumers.sinks import Seen

    settings, found = load_settings(anywhere=True), load_config(config, os.environ)
    bootstrap = _bootstrap(settings, found)
    file = state or settings.home / "consumers" / f"{found.group}.db"
    _log_to_stderr()
    with interruption() as stop, Seen(file) as seen:
        consumed = DealerConsumer(found, bootstrap, seen).run(stop, once)
    console.data(consumed, words(consumed))


def _bootstrap(settings: Settings, config: ConsumerConfig) -> str:
    from headgate.core.kafka.topics import bootstrap_of

    return config.bootstrap or bootstrap_of(settings)


def _log_to_stderr() -> None:
    import logging

    log = logging.getLogger("headgate.consumer")
    log.setLevel(logging.INFO)
    log.handlers[:] = [stderr_log_handler("%(levelname)s %(message)s")]


def words(consumed: Consumed) -> str:
    """The report for a person."""
    lines = [f"{consumed.dealer} ({consumed.topic}): {consumed.received:,} records"]
    notes = {
        "handled": consumed.handled,
        "known already": consumed.duplicates,
        "of another dealer": consumed.wrong_dealer,
        "unreadable": consumed.unreadable,
    }
    return "\n".join(lines + [f"  {name:<18} {n:>9,}" for name, n in notes.items()])
