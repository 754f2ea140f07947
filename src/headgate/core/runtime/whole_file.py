"""A file that appears only when it is complete."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from headgate.errors import OperationError


@contextmanager
def whole_file(file: Path) -> Generator[Path]:
    """A path to write to that becomes `file` when the writing has succeeded."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield part
        part.replace(file)
    except OSError as error:
        raise OperationError(
            f"{file} cannot be written",
            why=error.strerror or str(error).partition("\n")[0],
            fix="check the folder, its permissions and the room on the disk",
        ) from error
    finally:
        part.unlink(missing_ok=True)
