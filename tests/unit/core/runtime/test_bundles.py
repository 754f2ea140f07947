"""Bundles: what the lock says is what is used."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from headgate.core.runtime import bundles
from headgate.core.runtime.bundles import (
    Artifact,
    bundle,
    bundle_folder,
    faulty,
    ivy_xml,
    place,
    read_lock,
)
from headgate.errors import OperationError, UnavailableError, UsageError

CONTENT = b"a jar"


def artifact(content: bytes = CONTENT, **changes: str) -> Artifact:
    sha = hashlib.sha256(content).hexdigest()
    return Artifact("org.example", "thing", "1.0", sha, **changes)


def keep(store: Path, item: Artifact, content: bytes = CONTENT) -> None:
    place(item, store).parent.mkdir(parents=True)
    place(item, store).write_bytes(content)


class Downloads:
    """Stands for Ivy: each call brings the next content, or raises it."""

    def __init__(self, *contents: bytes | Exception) -> None:
        self.left = list(contents)

    def __call__(self, artifacts, folder, environ):
        content = self.left.pop(0)
        if isinstance(content, Exception):
            raise content
        for item in artifacts:
            (folder / item.file_name).write_bytes(content)
        return folder


@pytest.fixture
def locked(monkeypatch, tmp_path):
    """A lock with one bundle of one jar, and an empty cache."""
    item = artifact()
    lock = {"small": bundles.Bundle("small", "", (item,))}
    monkeypatch.setattr(bundles, "read_lock", lambda: lock)
    return item, {"HEADGATE_CACHE": str(tmp_path)}


def test_every_locked_artifact_has_a_hash_and_each_file_name_is_its_own():
    for found in read_lock().values():
        names = [item.file_name for item in found.artifacts]
        assert len(names) == len(set(names))
        assert all(len(item.sha256) == 64 for item in found.artifacts)


def test_the_lock_names_no_host():
    text = bundles.LOCK_FILE.read_text() + bundles.PLAIN_SETTINGS
    assert "://" not in text


def test_the_ivy_file_asks_for_exactly_the_artifacts():
    tree = ElementTree.fromstring(ivy_xml([artifact(classifier="plugin", ext="tar.gz")]))
    (dependency,) = tree.iter("dependency")
    assert dependency.attrib == {
        "org": "org.example", "name": "thing", "rev": "1.0", "transitive": "false"
    }  # fmt: skip
    (asked,) = dependency
    assert asked.attrib["ext"] == "tar.gz"
    assert asked.attrib["{http://ant.apache.org/ivy/maven}classifier"] == "plugin"


def test_two_files_of_one_module_are_asked_for_in_one_dependency():
    both = [artifact(), artifact(b"x", classifier="linux-x86_64")]
    (dependency,) = ElementTree.fromstring(ivy_xml(both)).iter("dependency")
    marks = [asked.get("{http://ant.apache.org/ivy/maven}classifier") for asked in dependency]
    assert marks == [None, "linux-x86_64"]


def test_every_list_is_in_the_lock_as_it_stands():
    lists = Path(__file__).parents[4] / "tools" / "bundles"
    assert {file.stem for file in lists.glob("*.txt")} == {*read_lock()}
    for name, found in read_lock().items():
        lines = (lists / f"{name}.txt").read_text("utf-8").splitlines()
        named = [tuple(line.split(":")[:3]) for line in lines if not line.startswith("#")]
        assert named == [(item.org, item.name, item.version) for item in found.artifacts]
        assert found.note == " ".join(line[2:] for line in lines if line.startswith("#"))


def test_only_what_everybody_needs_is_fetched_unasked():
    assert [name for name, found in read_lock().items() if not found.optional] == ["spark", "kafka"]


def packed(*members: tarfile.TarInfo) -> bytes:
    """A tar.gz of these members; each regular file has the same content."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for member in members:
            member.size = len(CONTENT) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(CONTENT) if member.isreg() else None)
    return file.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644):
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode = kind, target, mode
    return made


@pytest.fixture
def unpacked(monkeypatch, tmp_path):
    """Make an archive with these members the only bundle, and unpack it."""

    def unpack(*members: tarfile.TarInfo) -> Path:
        content = packed(*members)
        item = artifact(content, ext="tar.gz")
        lock = {"packed": bundles.Bundle("packed", "", (item,))}
        monkeypatch.setattr(bundles, "read_lock", lambda: lock)
        monkeypatch.setattr(bundles, "fetch", Downloads(content))
        return bundle_folder("packed", {"HEADGATE_CACHE": str(tmp_path / "cache")})

    return unpack


def test_a_packed_bundle_is_unpacked_once(unpacked):
    folder = unpacked(
        member("./bin", tarfile.DIRTYPE), member("./bin/run", mode=0o4755), member("lib/a.jar")
    )
    assert (folder / "lib" / "a.jar").read_bytes() == CONTENT
    assert (folder / "lib" / "a.jar").stat().st_mode & 0o7777 == 0o644
    assert (folder / "bin" / "run").stat().st_mode & 0o7777 == 0o755
    assert bundle_folder("packed", {"HEADGATE_CACHE": str(folder.parents[1])}) == folder
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize(
    "hostile",
    [
        [member("../outside")],
        [member("lib/../../../outside")],
        [member("/outside")],
        [member("..", tarfile.DIRTYPE)],
        [member("lib", tarfile.SYMTYPE, "../.."), member("lib/outside")],
        [member("lib", tarfile.SYMTYPE, "/etc")],
        [member("lib/a", tarfile.LNKTYPE, "../../outside")],
        [member("lib/a", tarfile.FIFOTYPE)],
        [member("lib/a", tarfile.CHRTYPE)],
        [member("lib/a", tarfile.BLKTYPE)],
    ],
    ids=lambda members: f"{members[0].name}-{members[0].type.decode()}",
)
def test_nothing_of_a_hostile_archive_is_left(unpacked, tmp_path, hostile):
    with pytest.raises(OperationError, match="is not unpacked"):
        unpacked(member("good"), *hostile)
    assert list((tmp_path / "cache" / "unpacked").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache"]


def test_unpacking_uses_nothing_that_the_oldest_python_lacks(unpacked, monkeypatch):
    """`extractall` takes a filter since Python 3.11.4 only."""
    monkeypatch.delattr(tarfile.TarFile, "extractall")
    assert (unpacked(member("lib/a.jar")) / "lib" / "a.jar").is_file()


def test_a_missing_or_damaged_jar_is_faulty(tmp_path):
    good, gone, damaged = artifact(), artifact(b"gone"), artifact(b"other")
    keep(tmp_path, good)
    keep(tmp_path, damaged, b"cut sho")
    assert faulty([good, gone, damaged], tmp_path) == (gone, damaged)


def test_a_bundle_is_fetched_once(locked, monkeypatch):
    _, environ = locked
    monkeypatch.setattr(bundles, "fetch", downloads := Downloads(CONTENT))
    (jar,) = bundle("small", environ)
    assert bundle("small", environ) == (jar,)
    assert jar.read_bytes() == CONTENT
    assert downloads.left == []


def test_a_jar_damaged_in_the_cache_is_fetched_again(locked, monkeypatch):
    _, environ = locked
    monkeypatch.setattr(bundles, "fetch", Downloads(CONTENT, CONTENT))
    (jar,) = bundle("small", environ)
    jar.write_bytes(b"bit rot")
    (again,) = bundle("small", environ)
    assert again.read_bytes() == CONTENT


def test_a_jar_damaged_under_way_is_fetched_once_more(locked, monkeypatch):
    _, environ = locked
    monkeypatch.setattr(bundles, "fetch", Downloads(b"cut", CONTENT))
    (jar,) = bundle("small", environ)
    assert jar.read_bytes() == CONTENT


def test_a_jar_that_stays_wrong_is_refused_and_not_kept(locked, monkeypatch):
    item, environ = locked
    monkeypatch.setattr(bundles, "fetch", Downloads(b"evil", b"evil"))
    with pytest.raises(OperationError) as caught:
        bundle("small", environ)
    assert item.coordinates in caught.value.why
    assert not list(Path(environ["HEADGATE_CACHE"]).rglob("*.jar"))


def test_offline_nothing_half_fetched_is_left(locked, monkeypatch):
    _, environ = locked
    monkeypatch.setattr(bundles, "fetch", Downloads(UnavailableError("offline")))
    with pytest.raises(UnavailableError):
        bundle("small", environ)
    assert [p.name for p in Path(environ["HEADGATE_CACHE"], "jars").iterdir()] == [".lock"]


def test_an_unknown_bundle_lists_those_there_are():
    with pytest.raises(UsageError) as caught:
        bundle("flink")
    assert "spark, kafka" in caught.value.fix
