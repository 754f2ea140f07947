"""Whose statements stand at a target that knows them by name alone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from headgate.errors import DeclarationError
from headgate.filters.compile.flink import flink_statements
from headgate.filters.loader import parse_filter
from headgate.filters.store.control import ControlStore


class Ownership(Protocol):
    """What the ops store knows about names that filters share."""

    def texts(self, filter_id: str) -> Collection[str]:
        """Every statement that some version of the filter was compiled to."""
        ...

    def others(self, filter_id: str, topic: str) -> Collection[str]:
        """Other filters that run at this target and write to this topic."""
        ...


class StoredOwnership:
    """By the versions and records of the ops store."""

    def __init__(self, control: ControlStore, target: str) -> None:
        self._control, self._target = control, target

    def texts(self, filter_id: str) -> frozenset[str]:
        found: set[str] = set()
        for version in self._control.versions(filter_id):
            try:
                found |= set(flink_statements(parse_filter(dict(version.document))))
            except DeclarationError:  # written before the language became stricter
                continue
        return frozenset(found)

    def others(self, filter_id: str, topic: str) -> frozenset[str]:
        return frozenset(
            record.id
            for record in self._control.filters()
            if record.id != filter_id and record.target == self._target and record.runs
            if topic in self._topics(record.id, record.wanted_version, record.deployed_version)
        )

    def _topics(self, filter_id: str, *numbers: int | None) -> frozenset[str]:
        versions = (self._control.version(filter_id, n) for n in numbers if n is not None)
        return frozenset(str(one.document["outputTopic"]) for one in versions if one)
