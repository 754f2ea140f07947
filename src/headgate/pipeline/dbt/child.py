"""The child process that runs dbt: several commands, one parse of the project, one dataset's models.

Importing dbt takes longer than building small marts, so all commands share a process. The only module
that imports dbt; started as `python -m headgate.pipeline.dbt.child` with one JSON argument.
"""

# dbt's own objects are not typed throughout.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from dbt.cli.main import dbtRunner

from headgate.pipeline.dbt.models import Manifest, Scope


def main() -> None:
    """Run what the first argument says; the first command that fails ends it."""
    told = json.loads(sys.argv[1])
    scope = Scope(told["active"], dict(told["tables"]), frozenset(told["present"]))
    read = None
    for arguments in told["commands"]:
        if arguments[0] == "deps":
            _invoke(arguments, None)
            continue
        read = read or _invoke(["parse", *told["shared"]], None)
        # Documentation is about all of them.
        left_out = [] if arguments[0] == "docs" else _excluded(scope)
        _invoke([*arguments, *left_out], read)


def _invoke(arguments: list[str], manifest: object) -> object:
    result = dbtRunner(manifest=manifest).invoke(arguments)  # pyright: ignore[reportArgumentType]  dbt's own
    if not result.success:
        if result.exception:
            print(result.exception, file=sys.stderr)
        sys.exit(1)
    return result.result


def _excluded(scope: Scope) -> list[str]:
    """Asked of the file that dbt wrote when it read the project."""
    file = Path(os.environ["DBT_TARGET_PATH"]) / "manifest.json"
    names = Manifest.model_validate_json(file.read_bytes()).outside(scope).names
    return ["--exclude", *sorted(names)] if names else []


if __name__ == "__main__":
    main()
