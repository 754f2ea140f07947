"""The process that runs dbt: several commands, one reading of the project, one dataset's models.

Importing dbt takes longer than building small marts, so all commands share a process.
"""

# dbt's own objects are not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportAny=false

from __future__ import annotations

import json
import sys
from typing import Any

from dbt.cli.main import dbtRunner

from headgate.checks.dbt_scope import Node, Scope, outside


def main() -> None:
    """Run what the first argument says; the first command that fails ends it."""
    told = json.loads(sys.argv[1])
    scope = Scope(told["active"], dict(told["tables"]), frozenset(told["present"]))
    manifest = None
    for arguments in told["commands"]:
        if arguments[0] == "deps":
            _invoke(arguments, None)
            continue
        manifest = manifest or _invoke(["parse", *told["shared"]], None)
        # Documentation is about all of them.
        left_out = [] if arguments[0] == "docs" else _excluded(manifest, scope)
        _invoke([*arguments, *left_out], manifest)


def _invoke(arguments: list[str], manifest: Any) -> Any:  # pyright: ignore[reportExplicitAny]  dbt's
    result = dbtRunner(manifest=manifest).invoke(arguments)
    if not result.success:
        if result.exception:
            print(result.exception, file=sys.stderr)
        sys.exit(1)
    return result.result


def _excluded(manifest: Any, scope: Scope) -> list[str]:  # pyright: ignore[reportExplicitAny]  dbt's
    nodes = {
        id_: Node(
            node.name,
            str(node.resource_type),
            tuple(getattr(node.depends_on, "nodes", ())),
            tuple(node.tags),
        )
        for id_, node in manifest.nodes.items()
    }
    sources = {i: f"{s.source_name}.{s.name}" for i, s in manifest.sources.items()}
    names = sorted(outside(nodes, sources, scope).names)
    return ["--exclude", *names] if names else []


if __name__ == "__main__":
    main()
