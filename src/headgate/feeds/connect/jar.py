"""Jars that depend on nothing but their content."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

MANIFEST = "META-INF/MANIFEST.MF"
MANIFEST_TEXT = b"Manifest-Version: 1.0\r\nCreated-By: headgate\r\n\r\n"
# The earliest time that a zip file can hold: the same content gives the same bytes.
EARLIEST = (1980, 1, 1, 0, 0, 0)


def write_jar(target: Path, content: Mapping[str, bytes]) -> None:
    """Write these entries, the manifest first and the others by name."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr(_entry(MANIFEST), MANIFEST_TEXT)
        for name in sorted(content):
            jar.writestr(_entry(name), content[name])


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, EARLIEST)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry
