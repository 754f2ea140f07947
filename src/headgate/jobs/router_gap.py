"""The router's part of mending: records that expired unread, and a checkpoint that is lost."""

from __future__ import annotations

from contextlib import closing

from headgate.engine.checkpoint import Checkpoint
from headgate.engine.context import RunContext
from headgate.engine.expiry import expired
from headgate.engine.followed import Followed
from headgate.engine.protocol import Result, ledger_row
from headgate.engine.reach import Reached
from headgate.jobs.gap import gap_range
from headgate.jobs.group import GroupOffsetsOf
from headgate.jobs.progress import RunProgress
from headgate.jobs.repair import Repaired
from headgate.jobs.resume import goes_on_at, repair_checkpoint
from headgate.jobs.router_target import RouterTarget, ledger_reached
from headgate.store.model import ACCEPTED_GAP, Intent
from headgate.store.ops import OpsStore
from headgate.store.routing_model import RoutedBatch


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
