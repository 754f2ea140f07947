"""Prints the SQL of a rule set: `python tools/rules_to_sql.py rules.yaml > dq_generated.sql`.

The same as `headgate rules compile FILE`, for those who run the documents' command.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
USAGE = "usage: python tools/rules_to_sql.py RULES_FILE > dq_generated.sql\n"


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write(USAGE)
        return 1
    # A checkout need not be installed.
    sys.path.insert(0, str(ROOT / "src"))
    from headgate.config.settings import load_settings
    from headgate.errors import HeadgateError
    from headgate.quality.cli.compile import compiled_texts
    from headgate.terminal.console import console

    try:
        texts = compiled_texts(load_settings(ROOT), Path(arguments[0]))
    except HeadgateError as error:
        console.error(error)
        return error.exit_code
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    sys.stdout.write("\n".join(text.sql for text in texts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
