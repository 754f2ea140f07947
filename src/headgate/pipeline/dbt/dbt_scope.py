"""Which dbt models one dataset builds: those that its silver table feeds, and what they stand on.

Pure: the process that runs dbt asks it about the project that dbt has read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A model, seed, snapshot or test of dbt, with the ids of what it reads."""

    name: str
    kind: str
    parents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def is_built(self) -> bool:
        return self.kind in ("model", "seed", "snapshot")


@dataclass(frozen=True)
class Scope:
    """The active dataset, every dataset's silver table, and which of those tables are there."""

    active: str
    tables: Mapping[str, str]
    present: frozenset[str]

    @property
    def table(self) -> str:
        return self.tables[self.active]


@dataclass(frozen=True)
class Outside:
    """What is not built: other datasets' models, and those that await another's silver table."""

    names: frozenset[str]
    waiting: Mapping[str, tuple[str, ...]]


def outside(nodes: Mapping[str, Node], sources: Mapping[str, str], scope: Scope) -> Outside:
    """`sources` maps the ids of dbt's sources to tables; those of no dataset count for nothing."""
    built = {id_: node for id_, node in nodes.items() if node.is_built}
    fed = _fed(nodes, sources, frozenset(scope.tables.values()))
    there = scope.present | {scope.table}
    wanted = {i for i in built if scope.table in fed[i] and fed[i] <= there}
    wanted |= _reference(nodes, built, fed, scope)
    wanted = _with_ancestors(wanted, nodes)
    waiting = {
        built[i].name: tuple(sorted(fed[i] - there))
        for i in built
        if scope.table in fed[i] and fed[i] - there
    }
    return Outside(frozenset(built[i].name for i in built if i not in wanted), waiting)


def _fed(
    nodes: Mapping[str, Node], sources: Mapping[str, str], tables: frozenset[str]
) -> dict[str, frozenset[str]]:
    """The datasets' tables that each node reads, directly or through others."""
    found: dict[str, frozenset[str]] = {
        id_: frozenset({table} & tables) for id_, table in sources.items()
    }

    def of(id_: str) -> frozenset[str]:
        if id_ not in found:
            parents = nodes[id_].parents if id_ in nodes else ()
            found[id_] = frozenset[str]().union(*(of(parent) for parent in parents))
        return found[id_]

    for id_ in nodes:
        of(id_)
    return found


def _with_ancestors(ids: Iterable[str], nodes: Mapping[str, Node]) -> set[str]:
    seen, waiting = set[str](), list(ids)
    while waiting:
        id_ = waiting.pop()
        if id_ in nodes and id_ not in seen:
            seen.add(id_)
            waiting.extend(nodes[id_].parents)
    return seen


def _reference(
    nodes: Mapping[str, Node],
    built: Mapping[str, Node],
    fed: Mapping[str, frozenset[str]],
    scope: Scope,
) -> set[str]:
    """Models that no silver table feeds go with the dataset that uses them or that a tag names."""
    plain = {i for i in built if not fed[i]}
    wanted: set[str] = set()
    for group in _joined(nodes, plain):
        inside = group & plain
        tables = frozenset[str]().union(*(fed[i] for i in group))
        tags = {tag for i in inside for tag in built[i].tags} & set(scope.tables)
        owners = {name for name, table in scope.tables.items() if table in tables} | tags
        if not owners or scope.active in owners:
            wanted |= inside
    return wanted


def _joined(nodes: Mapping[str, Node], plain: set[str]) -> list[set[str]]:
    """Groups of plain nodes that hang together, each with the nodes that touch it."""
    groups: list[set[str]] = []
    for id_, node in nodes.items():
        near = {id_, *node.parents}
        if not near & plain:
            continue
        touching = [group for group in groups if group & near & plain]
        groups = [group for group in groups if not group & near & plain]
        groups.append(near.union(*touching))
    return groups
