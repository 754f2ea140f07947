"""What the service answers beside the records of the ops store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from headgate.control.targets.model import Deployment, Observed
from headgate.store.control_model import Status


@dataclass(frozen=True)
class Generated:
    """The SQL of a filter; `statements` are the sink and the insert."""

    filter_id: str
    revision: str
    sql: str
    statements: tuple[str, ...]
    valid: bool
    validation_errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Validation:
    valid: bool
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeploymentStatus:
    """Desired and observed state of one filter, side by side."""

    filter_id: str
    status: Status
    statement_ids: tuple[str, ...]
    deployed_at: datetime | None
    deployment_error: str | None
    last_checked: datetime
    desired: Deployment | None
    observed: Observed | None
    cutover: Mapping[str, int]
    reason: str


@dataclass(frozen=True)
class Difference:
    """Two versions of a filter: their texts' unified difference and the fields that changed."""

    filter_id: str
    before: int
    after: int
    fields: tuple[str, ...]
    text: str
