"""The targets that the settings name."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.targets.engine import EngineTarget
from headgate.filters.targets.model import DeploymentTarget


def open_targets(settings: Settings, store: OpsStore) -> Mapping[str, DeploymentTarget]:
    """Our engine always; Confluent's Flink once its endpoint is given."""
    targets: dict[str, DeploymentTarget] = {"engine": EngineTarget(store.routing)}
    if settings.confluent_flink_api_endpoint:
        from headgate.filters.targets.confluent_api import Statements, place_of
        from headgate.filters.targets.ownership import StoredOwnership
        from headgate.filters.targets.targets_confluent import ConfluentTarget

        owned = StoredOwnership(store.control, ConfluentTarget.name)
        targets[ConfluentTarget.name] = ConfluentTarget(Statements(place_of(settings)), owned)
    return targets
