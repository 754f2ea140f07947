"""What the documents show is there: links, commands, targets, and a manifest that compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from headgate.cli.main import cli
from headgate.core.sql.script import PLACEHOLDERS
from headgate.pipeline.compile.dataset import compile_dataset
from headgate.pipeline.loader import load_dataset

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
# A Python file in a folder: of the repository, of the package, or of the tests.
MODULE = re.compile(r"(?<![\w./<>…-])(?:[\w.-]+/)+\w+\.py\b")
FOLDERS = [ROOT / folder for folder in (".", "src/headgate", "tests/unit", "tests/integration")]
TARGETS = set(re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text("utf-8"), re.M))
LAYOUTS = {
    file.name: file.read_text("utf-8") for file in (ROOT / "datasets/_template").glob("*.j2")
}


def by_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def shell_lines(page: Path) -> Iterator[str]:
    for block in re.findall(r"^```bash\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
        yield from (line.partition("#")[0].strip() for line in block.splitlines())


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_every_link_leads_somewhere(page: Path) -> None:
    linked = LINK.findall(page.read_text("utf-8"))
    assert not [target for target in linked if not (page.parent / target).exists()]


# The page of durations is the record of one run, whose files may have other names by now.
@pytest.mark.parametrize("page", [p for p in PAGES if p.stem != "test_durations"], ids=by_name)
def test_every_python_file_that_is_named_exists(page: Path) -> None:
    named = MODULE.findall(page.read_text("utf-8"))
    assert not [file for file in named if not any((at / file).is_file() for at in FOLDERS)]


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_every_make_target_that_is_shown_exists(page: Path) -> None:
    shown = {
        target for line in shell_lines(page) for target in re.findall(r"\bmake ([a-z-]+)", line)
    }
    assert shown <= TARGETS


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_every_command_that_is_shown_exists(page: Path) -> None:
    for line in shell_lines(page):
        for words in re.findall(r"(?:^|/|\s)headgate((?: (?:-o \w+|[a-z][a-z-]*))+)", line):
            verbs = re.sub(r"-o \w+", "", words).split()
            assert command(verbs) is not None, line


def command(words: list[str]) -> click.Command | None:
    """The command that the first words name; what follows are its arguments."""
    noun = cli.get_command(click.Context(cli), words[0])
    if not isinstance(noun, click.Group):
        return noun
    if len(words) == 1:
        return noun if noun.invoke_without_command else None
    return noun.get_command(click.Context(noun), words[1])


def test_the_manifest_that_is_shown_compiles(tmp_path: Path) -> None:
    text = (ROOT / "docs/03_add_new_dataset.md").read_text("utf-8")
    shown = re.search(r"```yaml\n(manifest_version:.*?)```", text, re.S)
    assert shown
    file = tmp_path / "orders" / "dataset.yml"
    file.parent.mkdir()
    file.write_text(shown.group(1))
    assert compile_dataset(load_dataset(file, PLACEHOLDERS), LAYOUTS, "dataset.yml").templates


def test_precommit_rewrites_no_golden_file() -> None:
    """The fixers of ends of lines and files leave alone what must stay byte for byte."""
    config = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    (excluded,) = re.findall(r"exclude: (\S+)", config)
    golden = [
        file
        for file in (ROOT / "tests").glob("[fg]*/**/*")
        if file.is_file() and file.suffix != ".pyc"
    ]
    assert golden
    assert all(
        re.search(excluded, file.relative_to(ROOT).as_posix()) for file in golden if _is_odd(file)
    )


def _is_odd(file: Path) -> bool:
    content = file.read_bytes()
    lines = content.split(b"\n")
    return any(line != line.rstrip(b" \t") for line in lines) or not content.endswith(b"\n")
