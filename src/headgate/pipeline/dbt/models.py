"""Which dbt models one dataset builds, and what a dbt run did, from dbt's own JSON files.

A dataset builds the models that its silver table feeds and what they depend on. Pure; also imported
by the child process, so it must import neither DuckDB nor our settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict


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


ERRORS = frozenset({"error", "runtime error", "partial success"})
BAD = ERRORS | {"fail", "skipped"}
CountRows = Callable[[str], int | None]


@dataclass(frozen=True)
class BuiltModel:
    """A model or seed that was built or tested; `rows` is None when it is not there."""

    name: str
    schema: str
    kind: str
    status: str
    rows: int | None
    seconds: float


@dataclass(frozen=True)
class DataTest:
    """One dbt test: pass, warn, fail, error or skipped."""

    name: str
    status: str
    failures: int
    message: str


@dataclass(frozen=True)
class Waiting:
    """A model that also reads other datasets' silver tables, which are not there."""

    model: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class DbtReport:
    """One dbt command. Success over nothing is no success: an empty tested model is named."""

    command: str
    ok: bool
    seconds: float
    passed: int
    warned: int
    failed: int
    models: tuple[BuiltModel, ...]
    tests: tuple[DataTest, ...]
    empty: tuple[str, ...]
    waiting: tuple[Waiting, ...] = ()

    @property
    def broken(self) -> tuple[str, ...]:
        """The models that could not be built; one skipped after a failed test is not among them."""
        return tuple(model.name for model in self.models if model.status in ERRORS)

    def rows(self, model: str) -> int | None:
        return next((built.rows for built in self.models if built.name == model), None)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Result(_Frozen):
    unique_id: str
    status: str
    execution_time: float = 0.0
    failures: int | None = None
    message: str | None = None


class RunResults(_Frozen):
    """dbt's run_results.json."""

    results: tuple[_Result, ...] = ()
    elapsed_time: float = 0.0


class _DependsOn(_Frozen):
    nodes: tuple[str, ...] = ()


class _ManifestNode(_Frozen):
    name: str
    resource_type: str
    tags: tuple[str, ...] = ()
    # dbt's own name for it; pydantic keeps `schema` for itself.
    relation_name: str | None = None
    depends_on: _DependsOn = _DependsOn()

    @property
    def schema_name(self) -> str:
        parts = (self.relation_name or "").replace('"', "").split(".")
        return parts[-2] if len(parts) > 1 else ""


class _Source(_Frozen):
    name: str
    source_name: str


class Manifest(_Frozen):
    """dbt's manifest.json."""

    nodes: Mapping[str, _ManifestNode]
    sources: Mapping[str, _Source] = {}

    def outside(self, scope: Scope) -> Outside:
        """What one dataset's run leaves out."""
        nodes = {
            id_: Node(node.name, node.resource_type, node.depends_on.nodes, node.tags)
            for id_, node in self.nodes.items()
        }
        sources = {id_: f"{s.source_name}.{s.name}" for id_, s in self.sources.items()}
        return outside(nodes, sources, scope)


def read_results(target: Path) -> tuple[RunResults, Manifest] | None:
    """What dbt wrote under `target`; None when it never got as far as running."""
    results, manifest = target / "run_results.json", target / "manifest.json"
    if not (results.is_file() and manifest.is_file()):
        return None
    return (
        RunResults.model_validate_json(results.read_bytes()),
        Manifest.model_validate_json(manifest.read_bytes()),
    )


def make_report(
    command: str,
    results: RunResults,
    manifest: Manifest,
    count_rows: CountRows,
    scope: Scope | None = None,
) -> DbtReport:
    """The report; `count_rows` takes a relation's name, quoted as dbt wrote it."""
    tests = tuple(_data_test(r, manifest) for r in results.results if _is_test(r, manifest))
    models = tuple(_models(results, manifest, count_rows))
    tested = _tested(results, manifest)
    empty = tuple(m.name for m in models if m.name in tested and not m.rows)
    statuses = [result.status for result in results.results]
    failed = sum(status in BAD for status in statuses)
    vacuous = command == "test" and not tests
    return DbtReport(
        command=command,
        ok=not (failed or empty or vacuous or not statuses),
        seconds=round(results.elapsed_time, 2),
        passed=sum(test.status == "pass" for test in tests),
        warned=sum(test.status == "warn" for test in tests),
        failed=failed,
        models=models,
        tests=tests,
        empty=empty,
        waiting=_waiting(manifest, scope) if scope else (),
    )


def _waiting(manifest: Manifest, scope: Scope) -> tuple[Waiting, ...]:
    found = manifest.outside(scope).waiting
    return tuple(Waiting(model, tables) for model, tables in sorted(found.items()))


def _is_test(result: _Result, manifest: Manifest) -> bool:
    return manifest.nodes[result.unique_id].resource_type == "test"


def _data_test(result: _Result, manifest: Manifest) -> DataTest:
    name = manifest.nodes[result.unique_id].name
    return DataTest(name, result.status, result.failures or 0, result.message or "")


def _tested(results: RunResults, manifest: Manifest) -> frozenset[str]:
    ids = {
        parent
        for result in results.results
        if _is_test(result, manifest)
        for parent in manifest.nodes[result.unique_id].depends_on.nodes
    }
    return frozenset(manifest.nodes[i].name for i in ids if i in manifest.nodes)


def _place(item: tuple[str, _ManifestNode]) -> tuple[str, str]:
    return item[1].schema_name, item[1].name


def _models(results: RunResults, manifest: Manifest, count_rows: CountRows) -> Iterable[BuiltModel]:
    built = {r.unique_id: r for r in results.results if not _is_test(r, manifest)}
    tested = _tested(results, manifest)
    for unique_id, node in sorted(manifest.nodes.items(), key=_place):
        if node.resource_type == "test" or not (unique_id in built or node.name in tested):
            continue
        result = built.get(unique_id)
        status = result.status if result else "tested"
        yield BuiltModel(
            name=node.name,
            schema=node.schema_name,
            kind=node.resource_type,
            status=status,
            rows=None if status in BAD else count_rows(node.relation_name or node.name),
            seconds=round(result.execution_time, 2) if result else 0.0,
        )
