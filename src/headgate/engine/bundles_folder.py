"""Bundles that are one packed folder: unpacked once, kept beside the jars."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from headgate.engine.bundles import bundle, locked_bundle
from headgate.engine.java import cache_dir


def bundle_folder(name: str, environ: Mapping[str, str] | None = None) -> Path:
    """The folder of a packed bundle, fetched and unpacked on first use."""
    (artifact,) = locked_bundle(name).artifacts
    target = cache_dir(environ) / "unpacked" / f"{artifact.name}-{artifact.sha256[:16]}"
    if not target.is_dir():
        (packed,) = bundle(name, environ)
        _unpack(packed, target)
    return target


def _unpack(packed: Path, target: Path) -> None:
    """Unpack beside the target and rename, so that a kill leaves nothing half-unpacked."""
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    with tarfile.open(packed) as archive:
        archive.extractall(draft, filter="data")
    try:
        draft.rename(target)
    except OSError:  # another process was quicker; both hold the same content
        shutil.rmtree(draft, ignore_errors=True)
        if not target.is_dir():
            raise
