"""What must be known of a topic's records to read their JSON: a dataset says it, and a rule set too."""

from __future__ import annotations

from typing import Protocol

from headgate.declarations.spec_columns import Column


class Records(Protocol):
    """The declared fields, how their times are written, and whether other fields may stand beside."""

    @property
    def columns(self) -> tuple[Column, ...]: ...

    @property
    def ts_format(self) -> str: ...

    @property
    def keeps_drift(self) -> bool: ...
