"""Write `bundles.lock.json`: fetch each artifact named in `tools/bundles/` and note its SHA-256.

Run it after changing a version: `python tools/lock_bundles.py [BUNDLE…]`; bundles that are not
named keep what the lock says. A list is what a transitive resolve of its first entry gives at run
time (the broker's: of its first and last), resolved again when that entry changes. Its head is the
bundle's note.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from headgate.core.runtime.bundles import LOCK_FILE, Artifact, digest, fetch

LISTS = Path(__file__).with_name("bundles")
ORDER = (
    *("spark", "kafka", "connect", "cassandra", "cassandra-java-driver"),
    *("ecj", "jmx-exporter", "apicurio", "debezium-cassandra", "debezium-postgres"),
)
ALWAYS = frozenset({"spark", "kafka"})


def lines(name: str) -> list[str]:
    return (LISTS / f"{name}.txt").read_text("utf-8").splitlines()


def note(name: str) -> str:
    return " ".join(line.removeprefix("# ") for line in lines(name) if line.startswith("#"))


def unlocked(name: str) -> list[Artifact]:
    """The artifacts of a list: `org:name:version`, then a classifier and an extension if any."""
    parts = [line.split(":") for line in lines(name) if line and not line.startswith("#")]
    return [_artifact(*part) for part in parts]


def _artifact(
    org: str, name: str, version: str, classifier: str | None = None, ext: str = "jar"
) -> Artifact:
    return Artifact(org, name, version, "", classifier, ext)


def locked(name: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        out = fetch(unlocked(name), Path(folder), os.environ)
        artifacts = [entry(a, out) for a in unlocked(name)]
    optional = {} if name in ALWAYS else {"optional": True}
    return {"note": note(name), **optional, "artifacts": artifacts}


def entry(artifact: Artifact, out: Path) -> dict[str, object]:
    found: dict[str, object] = {
        "org": artifact.org,
        "name": artifact.name,
        "version": artifact.version,
        "sha256": digest(out / artifact.file_name),
    }
    if artifact.classifier:
        found["classifier"] = artifact.classifier
    if artifact.ext != "jar":
        found["ext"] = artifact.ext
    return found


def main() -> None:
    before = json.loads(LOCK_FILE.read_text("utf-8"))["bundles"]
    asked = sys.argv[1:] or ORDER
    bundles = {n: locked(n) if n in asked else before[n] for n in ORDER}
    LOCK_FILE.write_text(json.dumps({"lock_version": 1, "bundles": bundles}, indent=2) + "\n")
    print(f"wrote {LOCK_FILE.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
