"""Bundles that are one packed folder: unpacked once, kept beside the jars."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from headgate.core.runtime.engine_bundles import bundle, locked_bundle
from headgate.core.runtime.engine_java import cache_dir
from headgate.errors import OperationError


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
    try:
        unpack_archive(packed, draft)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    try:
        draft.rename(target)
    except OSError:  # another process was quicker; both hold the same content
        shutil.rmtree(draft, ignore_errors=True)
        if not target.is_dir():
            raise


def unpack_archive(packed: Path, folder: Path) -> None:
    """Write the files and folders of a tar archive below a folder; refuse any other kind of member.

    `TarFile.extractall(filter="data")` came with Python 3.11.4. Links are not made at all, so no
    member can be written through one to a place outside of the folder.
    """
    with tarfile.open(packed) as archive:
        for member in archive:
            target = folder / _checked_path(packed, member)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            assert content is not None  # it is a regular file
            with content, target.open("wb") as file:
                shutil.copyfileobj(content, file)
            target.chmod(0o755 if member.mode & 0o100 else 0o644)


def _checked_path(packed: Path, member: tarfile.TarInfo) -> PurePosixPath:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        why = f"its member {member.name!r} would be written outside of the folder"
    elif not (member.isreg() or member.isdir()):
        why = f"its member {member.name!r} is neither a file nor a folder"
    else:
        return path
    raise OperationError(
        f"the archive {packed.name} is not unpacked",
        why=why,
        fix="check where it came from, and remove it",
    )
