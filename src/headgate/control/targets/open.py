"""The targets that the settings name."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.control.targets.engine import EngineTarget
from headgate.control.targets.model import DeploymentTarget
from headgate.settings import Settings
from headgate.store.ops import OpsStore


def open_targets(settings: Settings, store: OpsStore) -> Mapping[str, DeploymentTarget]:
    """Our engine always; Confluent's Flink once its endpoint is given."""
    targets: dict[str, DeploymentTarget] = {"engine": EngineTarget(store.routing)}
    if settings.confluent_flink_api_endpoint:
        from headgate.control.targets.confluent import ConfluentTarget
        from headgate.control.targets.confluent_api import Statements, place_of
        from headgate.control.targets.ownership import StoredOwnership

        owned = StoredOwnership(store.control, ConfluentTarget.name)
        targets[ConfluentTarget.name] = ConfluentTarget(Statements(place_of(settings)), owned)
    return targets
