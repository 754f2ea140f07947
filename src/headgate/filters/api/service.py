"""Opens the service of filters for a server: git, targets, and the steps that the server repeats in the background."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.declarations.names import ReservedTopics
from headgate.errors import UnavailableError
from headgate.filters.control.reconciler import Reconciler
from headgate.filters.control.service import FilterService
from headgate.filters.git.store import GitStore, open_git
from headgate.filters.preview import KafkaRecent
from headgate.filters.targets.deployment import open_targets
from headgate.web.app_state import Repeated

RECONCILE_EVERY = 0.5
SYNC_EVERY = 60.0


@contextmanager
def open_service(
    settings: Settings, store: OpsStore
) -> Generator[tuple[FilterService, tuple[Repeated, ...]]]:
    """The service, and steps that are not begun yet: who begins them ends them before this closes."""
    with ExitStack() as stack:
        git, targets = open_git(settings), open_targets(settings, store)
        for target in targets.values():
            stack.callback(getattr(target, "close", lambda: None))
        service = FilterService(
            store,
            git,
            targets,
            approval_valid=timedelta(hours=settings.approval_hours),
            recent=KafkaRecent(settings.bootstrap_servers) if settings.bootstrap_servers else None,
            source=settings.filter_source_topic,
            reserved=ReservedTopics.of(settings),
        )
        reconciler = Reconciler(store, git, targets)
        stack.callback(reconciler.close)
        yield service, _steps(settings, reconciler, git)


def _steps(settings: Settings, reconciler: Reconciler, git: GitStore) -> tuple[Repeated, ...]:
    def reconcile() -> None:
        reconciler.step()
        if trouble := reconciler.git_trouble():
            what, _, why = trouble.partition(" | ")
            raise UnavailableError(f"accepted filters wait for git: {what}", why=why)

    reconciling = Repeated("reconciler", RECONCILE_EVERY, reconcile)
    if not settings.git_repository:
        return (reconciling,)

    def sync() -> None:
        git.pull()
        git.push()

    return reconciling, Repeated("git", SYNC_EVERY, sync)
