"""The router's part of mending: records that expired unread, and a checkpoint that is lost."""

from __future__ import annotations

from contextlib import closing

from headgate.core.engine.context import RunContext
from headgate.core.engine.engine_checkpoint import Checkpoint
from headgate.core.engine.gap import gap_range
from headgate.core.engine.group import GroupOffsetsOf
from headgate.core.engine.progress import RunProgress
from headgate.core.engine.protocol import Result, ledger_row
from headgate.core.engine.repair import Repaired
from headgate.core.engine.resume import goes_on_at, repair_checkpoint
from headgate.core.kafka.expiry import expired
from headgate.core.kafka.followed import Followed
from headgate.core.lake.reach import Reached
from headgate.core.ledger.ops_store import OpsStore
from headgate.core.ledger.store_model import ACCEPTED_GAP, Intent
from headgate.filters.router.router_target import RouterTarget, ledger_reached
from headgate.filters.store.routing_model import RoutedBatch


class RouterGap:
    """The work of a batch whose records are all gone: no filter judged any of them."""

    def __init__(self, store: OpsStore) -> None:
        self._store = store

    def reached(self, intent: Intent) -> Reached | None:
        return ledger_reached(self._store, intent.job)

    def account(self, intent: Intent) -> Result | None:
        return None

    def write(self, intent: Intent) -> Result:
        return Result(0, {}, {}, intent.revisions, routed=RoutedBatch(intent.revisions[0]))


def withdraw_expired(store: OpsStore, job: str, topic: Followed) -> None:
    """Give up announced batches that can no longer be read whole."""
    for intent in store.open_intents(job):
        if intent.range.source_id == topic.topic_id and expired(topic, intent.range.start):
            store.withdraw(intent)


def accept_router_gap(
    context: RunContext,
    target: RouterTarget,
    topic: Followed,
    checkpoint: Checkpoint,
    set_id: str,
) -> None:
    """Settle what expired as a batch without a record, and go on behind it."""
    run, store, protocol = context.run, context.store, context.protocol()
    next_ = goes_on_at(topic, ledger_reached(store, run.job), checkpoint.start())
    range_ = gap_range(topic, next_, run.job)
    row = protocol.process(run.job, run.number, range_, (set_id,), ACCEPTED_GAP, RouterGap(store))
    RunProgress(context).batch(row)
    repair_checkpoint(checkpoint, topic, ledger_reached(store, run.job))
    with closing(GroupOffsetsOf(context, target)) as group:
        group.catch_up(topic)


def repair_router(context: RunContext, target: RouterTarget, topic: Followed) -> Repaired:
    """A new checkpoint behind all that is settled or announced; the old one is put aside."""
    store = context.store
    announced: list[Intent] = []
    for intent in store.open_intents(target.job):
        if intent.range.source_id == topic.topic_id:
            announced.append(intent)
            continue
        result = target.account(context.session, intent)
        if result is None:
            store.withdraw(intent)  # its topic is gone, and with it the records
        else:
            store.settle(intent, ledger_row(intent, result), None, result.routed)
    location = f"{context.settings.checkpoints.rstrip('/')}/{target.job}"
    checkpoint = Checkpoint(context.session, location, topic.names)
    reached = ledger_reached(store, target.job)
    aside, offsets = repair_checkpoint(checkpoint, topic, reached, announced)
    return Repaired(target.job, aside, offsets)
