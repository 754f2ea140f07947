"""Ask the services that processing needs, and count what the generator sent and refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from headgate.certify.stages import Answer, GeneratorMetrics
from headgate.config.settings import Settings
from headgate.core.engine.lease import active_engine
from headgate.core.ledger.ops_store import OpsStore
from headgate.errors import HeadgateError, UnavailableError
from headgate.local.health import STORAGE, ask_storage, health
from headgate.local.process import port_answers
from headgate.local.state import BROKER, ENGINE

if TYPE_CHECKING:
    from headgate.core.kafka.topics import TopicState

OUR_HEADER = "headgate.job"


class _Generated(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    events: int
    invalid: int
    topic: str


def probe_services(settings: Settings, store: OpsStore) -> tuple[Answer, ...]:
    """Ask the broker, the engine and the storage."""
    answers = {found.service: found for found in health(settings)}
    broker, engine = answers.get(BROKER), answers.get(ENGINE)
    return (
        Answer(BROKER, broker is not None and broker.healthy, broker.words if broker else "none"),
        Answer(ENGINE, True, engine.words)
        if engine is not None and engine.healthy
        else _engine_elsewhere(settings, store, engine.words if engine else "not running"),
        probe_storage(settings),
    )


def _engine_elsewhere(settings: Settings, store: OpsStore, words: str) -> Answer:
    """An engine that was not started here shows by its lease, and by its port where that is known."""
    holder = active_engine(store)
    if holder is None:
        return Answer(ENGINE, False, words)
    port = (settings.connect_url or "").rstrip("/").rpartition(":")[2]
    if port.isdigit() and not port_answers(int(port)):
        return Answer(ENGINE, False, f"{holder} holds the lease, but port {port} does not answer")
    return Answer(ENGINE, True, f"{holder} holds the lease")


def probe_storage(settings: Settings) -> Answer:
    storage = ask_storage(settings)
    place = f"{storage.address}: " if settings.storage == "local" else ""
    return Answer(STORAGE, storage.healthy, place + storage.words)


def generator_metrics(settings: Settings) -> GeneratorMetrics | None:
    """What the generator wrote of its last run; None when it has not run here."""
    try:
        text = (settings.metrics_dir / "generator.json").read_bytes()
        found = _Generated.model_validate_json(text)
    except (OSError, ValidationError):
        return None
    return GeneratorMetrics(found.events, found.invalid, found.topic)


def generator_refusals(settings: Settings, topic: str, metrics: GeneratorMetrics | None) -> int:
    """Dead letters that the generator sent: those on the topic that bear no header of ours."""
    known = metrics.invalid if metrics else 0
    if not settings.bootstrap_servers:
        return known
    from headgate.core.kafka.topics import Topics

    try:
        state = Topics(settings.bootstrap_servers, settings.http_timeout).describe(topic)
    except HeadgateError:
        return known
    if state is None or state.span == 0:
        return 0
    return _count_foreign(settings, state)


def _count_foreign(settings: Settings, topic: TopicState) -> int:
    from headgate.core.kafka.reader import Stretch, committed_records

    bootstrap, seconds = settings.need("bootstrap_servers"), settings.dlq_read_timeout
    try:
        found = committed_records(bootstrap, Stretch.whole(topic), seconds)
        return sum(OUR_HEADER not in record.headers for record in found)
    except UnavailableError as error:
        raise UnavailableError(
            "the dead letters could not be counted",
            why=error.why or error.what,
            fix="raise DLQ_READ_TIMEOUT, or look at the topic: headgate topics show",
        ) from error
