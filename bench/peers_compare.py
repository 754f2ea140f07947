"""Ours beside datacompy, DQX and exceptAll: the same two tables compared, one run.

    python bench/peers_compare.py [--rows N] [--only ours,datacompy] [--seconds LIMIT]

Each compares two tables of 18 columns by key, 0.1 % of the rows differing in one column. The rows
and columns that differ must be those that were planted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
from compare_rows import COLUMNS, planted, write_tables
from peers import Peer, measured, say

PEERS = (
    Peer("ours", "compare_ours.py", None),
    Peer("exceptAll", "compare_except_all.py", None),
    Peer("datacompy", "compare_datacompy.py", "datacompy"),
    Peer("DQX", "compare_dqx.py", "dqx"),
)


def judged(peer: Peer, found: dict[str, Any], rows: int) -> dict[str, Any]:
    """The peer's line of the table; counts that are not those planted are said."""
    if "failure" in found:
        return {"peer": peer.name, "verdict": found["failure"]}
    counts, expected = found.pop("counts"), planted(rows)
    right = counts.pop("rows") == rows - expected.matches
    if found["row_results"]:
        right = right and counts == expected.columns
    verdict = "counts as planted" if right else "COUNTS DIFFER"
    told = "" if found["row_results"] else ", no columns told"
    return {"peer": peer.name, **found, "verdict": verdict + told}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="Names, separated by commas.")
    parser.add_argument("--seconds", type=float, default=600.0, help="The most for one peer.")
    chosen = parser.parse_args()
    only = {name.strip().lower() for name in chosen.only.split(",") if name.strip()}
    wanted = [peer for peer in PEERS if not only or peer.name.lower() in only]
    with tempfile.TemporaryDirectory(prefix="headgate-peers-") as name:
        folder = Path(name)
        write_tables(folder, chosen.rows)
        lines: list[dict[str, Any]] = []
        for peer in wanted:
            say(f"{peer.name}: two tables of {chosen.rows:,} rows × {len(COLUMNS)} columns")
            lines.append(judged(peer, measured(peer, folder, chosen.seconds), chosen.rows))
            say(f"  {lines[-1]}")
    report = {"rows": chosen.rows, "rules": 0, "peers": [asdict(peer) for peer in wanted]}
    sys.stdout.write(orjson.dumps({**report, "lines": lines}, option=orjson.OPT_INDENT_2).decode())


if __name__ == "__main__":
    main()
