"""Writes schemas/openapi.json from the routes themselves: `python tools/openapi.py`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from headgate.api.app import create_app
from headgate.config.settings import Settings
from headgate.core.ledger.ops_store import OpsStore
from headgate.filters.control.service import FilterService

ROOT = Path(__file__).parents[1]
FILE = ROOT / "schemas" / "openapi.json"


def document() -> dict[str, Any]:
    """As the app serves it."""
    with tempfile.TemporaryDirectory() as home, OpsStore.open(f"sqlite:///{home}/ops.db") as store:
        app = create_app(Settings(root=Path(home)), store, FilterService(store, None, {}))
        return app.openapi()


def written(made: dict[str, Any]) -> str:
    """As it is committed: keys in order, so that a change shows as what it is."""
    return json.dumps(made, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(document()), encoding="utf-8")
