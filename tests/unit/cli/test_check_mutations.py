"""No traceback: every declared file with one place replaced by something odd, or left out."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML
from tests.support.document_mutations import ODD_JSON, ODD_YAML, mutate_document, replace_at

from headgate.cli.main import cli
from headgate.config.schema import NAMES
from headgate.demo.quality.declaration import load_feed
from headgate.errors import DeclarationError, HeadgateError
from headgate.filters.consumers.config import load_config
from headgate.reconcile.cassandra.connector import read_connector

ROOT = Path(__file__).parents[3]
COPIED = ("datasets", "rules", "schemas", "contracts", "consumers", "java/connect-plugins")
Check = Callable[[Path], object]


def command(*words: str) -> Check:
    """A command of `headgate`, which may end only as commands end."""

    def run(file: Path) -> None:
        given = [word.format(file=file, folder=file.parent.name) for word in words]
        error = CliRunner().invoke(cli, given).exception
        if error is not None and not isinstance(error, SystemExit):
            raise error

    return run


CHECKS: dict[str, Check] = {
    "datasets/*/dataset.yml": command("dataset", "check", "{folder}"),
    "datasets/*/sample.yml": command("dataset", "check", "{folder}"),
    "rules.yaml": command("rules", "check", "{file}"),
    "rules/*.yml": command("rules", "check", "{file}"),
    "rules.tests.yaml": command("rules", "test", "rules.yaml"),
    "rules/*.tests.yml": command("rules", "test", "{file}"),
    "rules/feed/*.yml": load_feed,
    "contracts/*.yml": command("hash", "check", "{file}"),
    "schemas/v1/filters/*.json": command("filters", "check", "{file}"),
    "consumers/*/consumer.yml": lambda file: load_config(file, os.environ),
    "java/connect-plugins/*.json": lambda file: read_connector(file.read_text("utf-8")),
}
ODD_TEXT = (
    "",
    " ",
    "0",
    "-1",
    "9" * 400,
    "1e400",
    "nan",
    "\ud800",
    "\u202ex\u2028y",
    "../../x",
    "${HOME}",
    "a=b#c",
    "postgresql://a:b@[::1",
    "http://[",
    "x" * 10_000,
)


@pytest.fixture
def whole_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of everything that is declared here."""
    for name in COPIED:
        shutil.copytree(
            ROOT / name, project / name, ignore=shutil.ignore_patterns("src", "vectors")
        )
    for file in ROOT.glob("rules*.yaml"):
        shutil.copy(file, project / file.name)
    shutil.copy(ROOT / "env/embedded.env", project / ".env")
    monkeypatch.chdir(project)
    return project


def declared_files(root: Path) -> Iterator[tuple[Path, Check]]:
    for pattern, check in CHECKS.items():
        for file in sorted(root.glob(pattern)):
            if not (pattern == "rules/*.yml" and file.name.endswith(".tests.yml")):
                yield file, check


def tracebacks(root: Path, most_of_a_file: int) -> tuple[Counter[str], list[str]]:
    """How often each file was tried, and what was not refused in words."""
    tried: Counter[str] = Counter()
    wrong: list[str] = []
    for file, check in declared_files(root):
        before = file.read_text("utf-8")
        odd = ODD_JSON if file.suffix == ".json" else (*ODD_JSON, *ODD_YAML)
        for done, text in spread(list(mutate_document(document_in(before), odd)), most_of_a_file):
            file.write_bytes(text.encode("utf-8", "surrogatepass"))
            tried[str(file.relative_to(root))] += 1
            try:
                check(file)
            except HeadgateError:
                pass
            except Exception as error:
                wrong.append(f"{file.relative_to(root)}: {done}: {described(error)}")
        file.write_text(before, "utf-8")
    return tried, wrong


def spread(items: Sequence[tuple[str, str]], most: int) -> Sequence[tuple[str, str]]:
    """At most so many of them, from everywhere; a step that is odd, so that each value comes."""
    step = -(-len(items) // most) | 1
    return items[step // 2 :: step]


def described(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def document_in(text: str) -> Any:
    # A time or a date is written as the text that stood there.
    return json.loads(json.dumps(YAML(typ="safe", pure=True).load(text), default=str))


def test_the_files_are_valid_as_they_are(whole_project: Path) -> None:
    found = list(declared_files(whole_project))
    assert len(found) >= len(CHECKS)
    for file, check in found:
        check(file)


@pytest.mark.parametrize(
    ("name", "steps", "value"),
    [
        ("schemas/v1/filters/service-by-dealer-001.json", ("version",), "1"),
        ("rules/taxi.yml", ("tables", 0, "rules", 9, "values", 1), "1e400"),
        ("rules/topic1.yml", ("tables", 0, "reconcile", "contract"), "9" * 400),
        ("rules/topic1.tests.yml", ("tests", 5, "given", 1), {}),
        (
            "datasets/orders/sample.yml",
            ("columns", 2, "time", "end"),
            "2025-01-15T10:00:00+02:00",
        ),
    ],
)
def test_what_once_raised_is_a_fault(
    whole_project: Path, name: str, steps: tuple[str | int, ...], value: object
) -> None:
    file = whole_project / name
    odd = json.dumps(replace_at(document_in(file.read_text("utf-8")), steps, value))
    file.write_text(odd.replace('"1e400"', "1e400"), "utf-8")
    check = dict(declared_files(whole_project))[file]
    with pytest.raises(DeclarationError):
        check(file)


def test_a_sample_of_odd_files_is_refused_in_words(whole_project: Path) -> None:
    tried, wrong = tracebacks(whole_project, most_of_a_file=2)
    assert not wrong, "\n".join(wrong)
    assert set(tried) == {
        str(f.relative_to(whole_project)) for f, _ in declared_files(whole_project)
    }


@pytest.mark.slow
def test_no_odd_file_ends_in_a_traceback(whole_project: Path) -> None:
    tried, wrong = tracebacks(whole_project, most_of_a_file=150)
    print(f"{sum(tried.values()):,} files", tried)
    assert not wrong, "\n".join(wrong)
    assert sum(tried.values()) >= 1_000


def test_odd_values_of_settings_are_refused_in_words(
    whole_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong: list[str] = []
    tried = 0
    for name in sorted(NAMES.values()):
        for value in ODD_TEXT:
            (whole_project / ".env").write_bytes(
                (ROOT / "env/embedded.env").read_bytes()
                + f"\n{name}={value}\n".encode("utf-8", "surrogatepass")
            )
            with monkeypatch.context() as patch:
                if "\ud800" not in value:
                    patch.setenv(name, value)
                tried += 1
                try:
                    command("config", "check")(whole_project / ".env")
                except HeadgateError:
                    pass
                except Exception as error:
                    wrong.append(f"{name}={value[:40]!r}: {described(error)}")
    assert not wrong, "\n".join(wrong)
    assert tried == len(NAMES) * len(ODD_TEXT)
