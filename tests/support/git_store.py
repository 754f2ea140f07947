"""Filter documents edited in the git repository without Headgate."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path


def filter_text(name: str, dealer: str = "DEALER-001") -> str:
    """A filter document as it stands in git."""
    return json.dumps(
        {
            "id": name,
            "name": name,
            "consumerId": "some-consumer",
            "outputTopic": f"filtered-{name}",
            "conditions": [
                {"field": "header_data.dealerId", "operator": "equals", "value": dealer}
            ],
            "enabled": True,
        },
        indent=2,
    )


def commit_by_hand(folder: Path, clone: Path, name: str, text: str | None) -> None:
    """Write or delete (`None`) a filter's file in a clone, and push it with git alone."""

    def git(*words: str) -> None:
        who = ["-c", "user.name=Hand", "-c", "user.email=hand@example.org"]
        subprocess.run(["git", *who, "-C", str(clone), *words], check=True, capture_output=True)

    if not clone.exists():
        subprocess.run(["git", "clone", "--quiet", str(folder), str(clone)], check=True)
    git("pull", "--quiet")
    file = clone / "schemas" / "v1" / "filters" / f"{name}.json"
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    git("add", "-A")
    git("commit", "--quiet", "-m", "by hand")
    git("push", "--quiet")
