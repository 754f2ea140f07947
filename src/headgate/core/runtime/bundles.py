"""JVM bundles: named sets of jars, fetched once per user with Ivy and checked against a lock file.

Files are kept by their SHA-256; what arrives with another content is fetched once more, then refused.
A bundle that is one packed folder is unpacked beside the jars, never through a link.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.util
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import quoteattr

from headgate.core.runtime.java import cache_dir, find_java, trust_options
from headgate.errors import OperationError, UnavailableError, UsageError

LOCK_FILE = Path(__file__).with_name("bundles.lock.json")
FETCH_SECONDS = 600
# No root is named: Ivy knows the public repository, and a company names its own in its settings.
PLAIN_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers>
    <ibiblio name="central" m2compatible="true" usepoms="false" useMavenMetadata="false"/>
  </resolvers>
</ivysettings>
"""
# What Ivy or Java says, and what it means.
CAUSES = (
    ("UnknownHost", "there is no network, or the server's name is unknown"),
    ("PKIX path building failed", "the server's certificate is not trusted by this Java"),
    ("Connection refused", "the server refused the connection"),
    ("timed out", "the server did not answer in time"),
    ("No space left on device", "the disk is full"),
)
SETTINGS_FAULT = re.compile(r"failed to load settings from \S+: (.+)")
PATTERN = "[artifact]-[revision](-[classifier]).[ext]"


@dataclass(frozen=True)
class Artifact:
    """One file of a bundle and the content it must have."""

    org: str
    name: str
    version: str
    sha256: str
    classifier: str | None = None
    ext: str = "jar"

    @property
    def file_name(self) -> str:
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{tail}.{self.ext}"

    @property
    def coordinates(self) -> str:
        return f"{self.org}:{self.name}:{self.version}"


@dataclass(frozen=True)
class Bundle:
    """A named set of artifacts, in class path order."""

    name: str
    note: str
    artifacts: tuple[Artifact, ...]
    optional: bool = False


def bundle(name: str, environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """The jars of a bundle in class path order, fetched on first use."""
    values = os.environ if environ is None else environ
    wanted = locked_bundle(name)
    store = cache_dir(values) / "jars"
    if wrong := faulty(wanted.artifacts, store):
        with _only_one(store):
            # Another process may have fetched them while this one waited.
            if wrong := faulty(wrong, store):
                _fetch_checked(name, wrong, store, values)
    return tuple(place(artifact, store) for artifact in wanted.artifacts)


def class_path(jars: Sequence[Path]) -> str:
    """The jars as one `-cp` argument."""
    return os.pathsep.join(str(jar) for jar in jars)


@functools.cache
def read_lock(path: Path = LOCK_FILE) -> Mapping[str, Bundle]:
    """Every bundle of the lock file."""
    content = json.loads(path.read_text())
    return {
        name: Bundle(
            name,
            entry["note"],
            tuple(Artifact(**item) for item in entry["artifacts"]),
            entry.get("optional", False),
        )
        for name, entry in content["bundles"].items()
    }


def locked_bundle(name: str) -> Bundle:
    bundles = read_lock()
    if name not in bundles:
        raise UsageError(f"there is no bundle {name!r}", fix=f"use one of {', '.join(bundles)}")
    return bundles[name]


def place(artifact: Artifact, store: Path) -> Path:
    """Where a jar is kept: by its content, so that two versions of the lock never collide."""
    return store / artifact.sha256 / artifact.file_name


def faulty(artifacts: Sequence[Artifact], store: Path) -> tuple[Artifact, ...]:
    """Those artifacts that are not in the store with the locked content."""
    return tuple(a for a in artifacts if digest(place(a, store)) != a.sha256)


def digest(path: Path) -> str | None:
    """The SHA-256 of a file, None when there is none."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def _fetch_checked(
    name: str, artifacts: Sequence[Artifact], store: Path, environ: Mapping[str, str]
) -> None:
    """Fetch; what arrives with another content is fetched once more, then refused."""
    wrong = _fetch_into(name, artifacts, store, environ)
    if wrong:
        _say(f"{len(wrong)} jar(s) arrived damaged, fetching them again")
        wrong = _fetch_into(name, wrong, store, environ)
    if wrong:
        raise OperationError(
            f"the bundle {name} does not have the locked content",
            why="SHA-256 differs after two downloads: "
            + ", ".join(artifact.coordinates for artifact in wrong),
            fix="check the mirror that HEADGATE_IVY_SETTINGS names, then run the command again",
        )


def _fetch_into(
    name: str, artifacts: Sequence[Artifact], store: Path, environ: Mapping[str, str]
) -> tuple[Artifact, ...]:
    """Move what arrived intact into the store; give back what did not."""
    _say(f"fetching bundle {name}: {len(artifacts)} jars, once per user")
    with tempfile.TemporaryDirectory(dir=store, prefix=".fetch-") as folder:
        arrived = fetch(artifacts, Path(folder), environ)
        wrong: list[Artifact] = []
        for artifact in artifacts:
            source = arrived / artifact.file_name
            if digest(source) != artifact.sha256:
                wrong.append(artifact)
                continue
            target = place(artifact, store)
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
    _say(f"bundle {name}: {len(artifacts) - len(wrong)} jars verified")
    return tuple(wrong)


def fetch(artifacts: Sequence[Artifact], folder: Path, environ: Mapping[str, str]) -> Path:
    """Download artifacts unchecked with Ivy; the folder they are in. Raises when one is missing."""
    out = folder / "out"
    settings = folder / "settings.xml"
    settings.write_text(PLAIN_SETTINGS)
    own = environ.get("HEADGATE_IVY_SETTINGS", "").strip()
    if own and not Path(own).is_file():
        raise UnavailableError(
            "the Ivy settings file is not there",
            why=f"HEADGATE_IVY_SETTINGS is {own}",
            fix="give the path of a readable ivysettings.xml, or unset the variable",
        )
    ivy_file = folder / "ivy.xml"
    ivy_file.write_text(ivy_xml(artifacts))
    command = _ivy_command(folder, Path(own) if own else settings, ivy_file, out, environ)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise _not_fetched("the download took more than ten minutes") from None
    missing = [a.coordinates for a in artifacts if not (out / a.file_name).is_file()]
    if missing:
        raise _not_fetched(ivy_reason(done.stdout + done.stderr, missing))
    return out


def ivy_xml(artifacts: Sequence[Artifact]) -> str:
    """The Ivy file that asks for exactly these artifacts and nothing they depend on."""
    lines = [
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
        '  <info organisation="headgate" module="bundle"/>',
        "  <dependencies>",
    ]
    for module, parts in itertools.groupby(sorted(artifacts, key=_module), key=_module):
        org, name, version = map(quoteattr, module)
        lines += [
            f'    <dependency org={org} name={name} rev={version} transitive="false">',
            *(f"      {_artifact_xml(part)}" for part in parts),
            "    </dependency>",
        ]
    return "\n".join([*lines, "  </dependencies>", "</ivy-module>", ""])


def _module(artifact: Artifact) -> tuple[str, str, str]:
    """Ivy takes one dependency for each module, with all its files."""
    return artifact.org, artifact.name, artifact.version


def _artifact_xml(a: Artifact) -> str:
    classifier = f" m:classifier={quoteattr(a.classifier)}" if a.classifier else ""
    ext = quoteattr(a.ext)
    return f"<artifact name={quoteattr(a.name)} type={ext} ext={ext}{classifier}/>"


def _ivy_command(
    folder: Path, settings: Path, ivy_file: Path, out: Path, environ: Mapping[str, str]
) -> list[str]:
    java = find_java(environ)
    return [
        str(java.executable),
        f"-Divy.default.ivy.user.dir={folder / 'user'}",
        *(trust_options(folder) if java.modules_limited else ()),
        *("-jar", str(ivy_jar())),
        *("-settings", str(settings)),
        *("-ivy", str(ivy_file)),
        *("-cache", str(folder / "cache")),
        *("-retrieve", str(out / PATTERN)),
    ]


def ivy_jar() -> Path:
    """The Ivy that ships with PySpark, found without importing PySpark."""
    package = importlib.util.find_spec("pyspark")
    places = list(package.submodule_search_locations or []) if package else []
    for folder in places:
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise UnavailableError(
        "PySpark is not installed",
        why="its Ivy fetches the JVM bundles",
        fix="run `make setup-dev`, or `pip install 'headgate[all]'`",
    )


def ivy_reason(output: str, missing: Sequence[str]) -> str:
    """Why Ivy brought less than it was asked for, in one line."""
    if broken := SETTINGS_FAULT.search(output):
        return f"HEADGATE_IVY_SETTINGS is not valid: {broken[1].strip()[:200]}"
    words = [known for mark, known in CAUSES if mark in output]
    listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    return f"not found: {listed}" + (f" ({words[0]})" if words else "")


def _not_fetched(why: str) -> UnavailableError:
    return UnavailableError(
        "the JVM bundle could not be fetched",
        why=why,
        fix="connect to the network once, or set HEADGATE_IVY_SETTINGS to your mirror's settings, "
        "or copy a filled cache and set HEADGATE_CACHE to it",
    )


@contextmanager
def _only_one(store: Path) -> Generator[None]:
    store.mkdir(parents=True, exist_ok=True)
    with (store / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for stale in store.glob(".fetch-*"):
            shutil.rmtree(stale, ignore_errors=True)
        yield


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


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
