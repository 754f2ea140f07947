"""Env files: their assignments with line numbers, the sources in order of strength, the active profile.

A source is a profile file, the running services' file or the process environment; `Sources.find`
returns the strongest entry for a name. Writing the active profile is atomic and readable by its
owner only, because profiles can hold secrets.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path

from headgate.errors import Fault, SettingsError, UsageError

ACTIVE = ".env"
DEFAULT_PROFILE = "env/embedded.env"
ENVIRONMENT = "environment"
RUNNING_SERVICES = "running services"
# A supervisor of local services holds it as long as it runs.
SUPERVISOR_LOCK = "local.lock"
# Homes hold tokens, passwords and all that was ever declared or refused.
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
# What a profile says of its own dataset; any other dataset has these unless told otherwise.
OF_A_DATASET = {
    "TOPIC": "{}.events",
    "DLQ_TOPIC": "{}.events.dlq",
    "DATA_PATH": "/data/{}.parquet",
    "SCHEMA_PATH": "/schemas/{}.json",
}

ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$")
COMMENT = re.compile(r"(?:^|(?<=\s))#.*$")
QUOTED = re.compile(r"""^\s*(["'])(.*?)\1\s*(?:#.*)?$""")


@dataclass(frozen=True)
class Entry:
    """One assignment: `raw` still has its white space, `value` has not."""

    value: str
    raw: str
    line: int | None = None


@dataclass(frozen=True)
class Source:
    """One place that gives values; `label` is what a person is told, `file` where faults point."""

    label: str
    file: str
    entries: Mapping[str, Entry]
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class Found:
    """A value together with the source that gave it."""

    entry: Entry
    source: Source


@dataclass(frozen=True)
class Sources:
    """Everything that gives values, from weakest to strongest."""

    root: Path
    ranked: tuple[Source, ...]

    def find(self, name: str) -> Found | None:
        for source in reversed(self.ranked):
            if name in source.entries:
                return Found(source.entries[name], source)
        return None

    @property
    def profile(self) -> Source:
        return self.ranked[0]

    def with_running(self, running: Source) -> Sources:
        """Running services know better than the profile, the environment better than both."""
        return Sources(self.root, (*self.ranked[:-1], running, self.ranked[-1]))


def unquoted(text: str) -> str:
    """The value of an assignment's right side, white space kept: quotes or a comment taken off."""
    quoted = QUOTED.match(text)
    return quoted.group(2) if quoted else COMMENT.sub("", text)


def parse_env(text: str, file: str) -> tuple[dict[str, Entry], tuple[Fault, ...]]:
    """The assignments of an env file and its faulty lines; of two assignments the last counts."""
    entries: dict[str, Entry] = {}
    faults: list[Fault] = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = ASSIGNMENT.match(line)
        if found is None:
            words = "a line must be NAME=value, a comment or blank"
            faults.append(Fault(file, number, "line", words, "Correct it or put # before it"))
            continue
        raw = unquoted(found.group(2))
        entries[found.group(1)] = Entry(raw.strip(), raw, number)
    return entries, tuple(faults)


def is_file(path: Path) -> bool:
    """Whether a file is there; none has a name that is longer than names can be."""
    try:
        return path.is_file()
    except OSError:
        return False


def read_profile(path: Path, shown: str) -> Source:
    """An env file as a source; a missing one gives nothing."""
    if not is_file(path):
        return Source(f"profile {shown}", shown, {})
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{shown} cannot be read", why=str(error), fix="make it a readable UTF-8 text file"
        ) from error
    entries, faults = parse_env(text, shown)
    return Source(f"profile {shown}", shown, entries, faults)


def read_running(path: Path) -> Source:
    """What the running local services wrote about themselves.

    Addresses that a killed supervisor left behind are nobody's: its services died with it, and by now
    another stack's may answer there.
    """
    if is_abandoned(path.parent):
        return Source(RUNNING_SERVICES, path.name, {})
    source = read_profile(path, path.name)
    return Source(RUNNING_SERVICES, path.name, source.entries)


def is_abandoned(home: Path) -> bool:
    """Whether a supervisor ran in this home and none does any more."""
    try:
        with (home / SUPERVISOR_LOCK).open("r") as handle:
            # Shared, so that two that only look do not take each other for a supervisor.
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # it is held, or there is none
        return False
    return True


def from_environment(environ: Mapping[str, str]) -> Source:
    entries = {name: Entry(value.strip(), value) for name, value in environ.items()}
    return Source(ENVIRONMENT, ENVIRONMENT, entries)


def read_sources(root: Path, environ: Mapping[str, str]) -> Sources:
    """The active profile (or the default one), the chosen dataset, and the environment."""
    shown = ACTIVE if (root / ACTIVE).is_file() else DEFAULT_PROFILE
    profile, environment = read_profile(root / shown, shown), from_environment(environ)
    return Sources(root, (profile, another_dataset(profile, environment), environment))


def another_dataset(profile: Source, environment: Source) -> Source:
    """With DATASET=x over a profile of another dataset, that one's topic and file are not x's."""
    own, chosen = (s.entries.get("DATASET", Entry("", "")).value for s in (profile, environment))
    label = f"DATASET={chosen}"
    if not own or not chosen or own == chosen:
        return Source(label, ENVIRONMENT, {})
    return Source(label, ENVIRONMENT, {k: Entry(v, v) for k, v in values_of(chosen).items()})


def values_of(dataset: str) -> dict[str, str]:
    """What the profile's values of its dataset are for any other one."""
    return {name: form.format(dataset) for name, form in OF_A_DATASET.items()}


def find_root(start: Path) -> Path:
    """The nearest folder upwards that holds profiles or datasets; UsageError when there is none."""
    for folder in (start, *start.parents):
        if (folder / DEFAULT_PROFILE).is_file() or (folder / "datasets").is_dir():
            return folder
    raise UsageError(
        "this is no Headgate project",
        why=f"neither {start} nor a folder above it has {DEFAULT_PROFILE} or a folder datasets",
        fix="change to the folder of your project (cd …), then the same command again",
    )


def suggestion(name: str, known: Iterable[str], cutoff: float = 0.8) -> str | None:
    """The known name this one was probably meant to be."""
    likeness = {k: SequenceMatcher(None, name.upper(), k).ratio() for k in known}
    best = max(likeness, key=likeness.__getitem__, default=None)
    return best if best and likeness[best] >= cutoff else None


def profiles(root: Path) -> tuple[str, ...]:
    """The profiles that ship with this project, as a person types them."""
    return tuple(sorted(f"env/{path.name}" for path in (root / "env").glob("*.env")))


def find_profile(root: Path, name: str) -> Path:
    """A profile by path (`env/local.env`) or by its bare name (`local`)."""
    for path in (Path(name), root / name, root / "env" / name, root / "env" / f"{name}.env"):
        if path.is_file() and path.resolve() != (root / ACTIVE).resolve():
            return path
    available = profiles(root)
    meant = get_close_matches(name, [*available, *(Path(p).stem for p in available)], n=1)
    raise SettingsError(
        f"there is no profile {name}",
        why=f"profiles here: {', '.join(available) or 'none'}",
        fix=f"headgate config select {meant[0] if meant else DEFAULT_PROFILE}",
    )


def is_edited(root: Path) -> bool:
    """Whether the active profile holds something that no shipped profile does."""
    active = root / ACTIVE
    if not active.is_file():
        return False
    text = active.read_bytes()
    return all((root / name).read_bytes() != text for name in profiles(root))


def write_atomically(path: Path, content: bytes) -> None:
    """Readers see the old file or the new one; only the owner may read it, it can hold secrets."""
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def activate(root: Path, profile: Path) -> Path | None:
    """Copy a profile to `.env`; an edited `.env` is kept, and where it went is returned."""
    kept = root / f"{ACTIVE}.previous" if is_edited(root) else None
    if kept:
        write_atomically(kept, (root / ACTIVE).read_bytes())
    write_atomically(root / ACTIVE, profile.read_bytes())
    return kept
