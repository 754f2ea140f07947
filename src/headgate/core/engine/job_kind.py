"""Kinds of jobs: a descriptor for each, listed as `module:attribute` in `headgate.app`, loaded on use.

A descriptor says how a job of the kind is named, what a run of it needs, and which function carries
it out. The engine, the commands and the ledger's rebuild ask the descriptor, so that none of them
knows a kind by name. Loading a descriptor loads no PySpark: what needs it is named by an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from headgate.app import JOB_KINDS, load
from headgate.core.engine.run_options import KafkaRunOptions
from headgate.core.ledger.model import RunOptions

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.core.engine.run import Job
    from headgate.core.ledger.model import JobSpec, Run
    from headgate.core.ledger.ops_store import OpsStore

Item = TypeVar("Item")


@dataclass(frozen=True)
class DeclaredRun:
    """What a new run keeps of the declaration: its revision, and options that say what it reads."""

    revision: str
    options: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True)
class JobDetails:
    """What `job show` shows of a job beside its runs and batches.

    The lag is for kinds that read no topic; `revision` is the one in force, `keys` counts the seen
    keys that are kept, `filters` has a row for each filter.
    """

    lag_records: int | None = None
    lag_words: str = ""
    revision: str = ""
    keys: int | None = None
    filters: tuple[object, ...] = ()


def need_default_dataset(settings: Settings) -> str:
    """The dataset of DATASET; raises where it is not set."""
    return str(settings.need("dataset"))


def always(settings: Settings, subject: str) -> bool:
    return True


def never(settings: Settings, subject: str) -> bool:
    return False


def count_none(settings: Settings, subject: str) -> int:
    return 0


def submit_at_once(store: OpsStore, spec: JobSpec) -> None:
    """Nothing is done before the run is submitted."""


def own_revision(store: OpsStore, run: Run) -> str:
    return run.revision


def no_details(store: OpsStore, run: Run) -> JobDetails:
    return JobDetails()


@dataclass(frozen=True)
class JobKind:
    """One kind of job. A job is named `<kind>-<subject>`; the defaults are those of a batch job."""

    name: str
    # What the second part of the name names: "dataset", "rule table", "topic" or "filter".
    subject: str
    # Entry of `(RunContext) -> None`, which carries out a run.
    run: str
    # The run of a subject in a mode, as it is declared now; keeps its revision in the store.
    declare_run: Callable[[Settings, OpsStore, str, str], DeclaredRun]
    # The model of the options of its runs: what is declared and what a person asks for.
    options: type[RunOptions] = RunOptions
    # The subject of a job that is named by its kind alone; None where that is refused.
    default_subject: Callable[[Settings], str] | None = None
    # A job of this kind in words, for the message that its subject is missing.
    title: str = ""
    can_stream: bool = False
    # The declared topics of a subject by side; a single topic has the side "".
    topics: Callable[[Settings, str], Mapping[str, str]] | None = None
    # Whether a run needs a broker: asked before Spark is started.
    needs_broker: Callable[[Settings, str], bool] = never
    # Called with a run that is new, not with one that is under way already.
    before_submit: Callable[[OpsStore, JobSpec], None] = submit_at_once
    # The revision that an active run goes by now.
    revision_in_force: Callable[[OpsStore, Run], str] = own_revision
    # How a stream that is under way gets another revision.
    revision_fix: str = "headgate job restart {job}: it goes on under the declared one"
    # Dead letters of a subject that stand in no table.
    other_dead_letters: Callable[[Settings, str], int] = count_none
    # Whether revision and offsets of each batch are shown.
    shows_revisions: bool = False
    details: Callable[[OpsStore, Run], JobDetails] = no_details
    # Entry of `(settings, store, run, fail_on) -> None`: writes the report of a batch run and raises what
    # `--fail-on` says. Empty where a run is judged by no rules.
    write_report: str = ""
    # Entry of `(session, settings, store) -> Iterable[RecoveredRows]`: the ledger rows that its tables tell,
    # one item for each subject. Empty where another kind tells them, or no table does.
    rebuild: str = ""
    # Entries of context managers `(session, store, settings)`, open as long as an engine is there.
    services: tuple[str, ...] = ()

    @property
    def follows_topics(self) -> bool:
        """Whether it has a checkpoint on topics, and so a lag in records."""
        return self.topics is not None


class _LazyMapping(Mapping[str, Item]):
    """A value for each kind by its name, loaded when it is asked for; the names are known before."""

    def __init__(self, get: Callable[[str], Item]) -> None:
        self._get = get

    def __getitem__(self, name: str) -> Item:
        if name not in JOB_KINDS:
            raise KeyError(name)
        return self._get(name)

    def __contains__(self, name: object) -> bool:
        return name in JOB_KINDS

    def __iter__(self) -> Iterator[str]:
        return iter(JOB_KINDS)

    def __len__(self) -> int:
        return len(JOB_KINDS)


def _kind(name: str) -> JobKind:
    return load(JOB_KINDS[name])


def _runner(name: str) -> Job:
    return load(_kind(name).run)


KINDS: Mapping[str, JobKind] = _LazyMapping(_kind)
# What carries out the runs of each kind; loading one loads PySpark.
JOBS: Mapping[str, Job] = _LazyMapping(_runner)


def find_kafka_options(run: Run) -> KafkaRunOptions | None:
    """The options of a run that reads Kafka; None for a run of another kind."""
    model = KINDS[run.kind].options if run.kind in KINDS else RunOptions
    return model.of(run) if issubclass(model, KafkaRunOptions) else None


def find_trigger(run: Run) -> float | None:
    """The trigger of a stream that reads Kafka, in seconds; None for any other run."""
    options = find_kafka_options(run)
    return options.trigger_seconds if options else None
