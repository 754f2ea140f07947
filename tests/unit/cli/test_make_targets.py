"""Every make target that the documents name exists, or is known to come later."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from bench.cli import cli as bench_cli

from headgate.cli.main import cli

MAKEFILE = (Path(__file__).parents[3] / "Makefile").read_text("utf-8")

# As the documents name them; where Spark replaces Flink, as the design maps them.
DOCUMENTED = """
setup-dev
env-select print-config debug-env validate-config
up stop down clean restart
build-sql show-sql
scaffold
create-topics
generate generate-limited
process process-bronze process-silver process-streaming
health check-lag status jobs job-cancel restart-streaming
wait-for-silver dbt-build dbt-test dbt-docs
validate validate-py
fmt lint type ci
test test-unit test-integration
obs-up obs-down
compact-silver expire-snapshots vacuum maintain
benchmark
logs logs-broker logs-engine logs-executor ps
""".split()
OURS = "help demo demo-quality demo-reconcile demo-filters serve check-filters dead-letters filter-faults reconcile-faults feed setup-system sample count certify docs test-fast test-all test-durations smoke faults bursts bench bench-peers".split()
COME_LATER: set[str] = set()

PROGRAMS: dict[str, click.Group] = {"HG": cli, "BENCH": bench_cli}
COMMANDS = sorted(set(re.findall(r"^\t\$\((HG|BENCH)\) ([^$>\n]+)", MAKEFILE, re.MULTILINE)))
VALUES = {"--kills": "1", "select": "local", "stop": "bronze-x", "rules": "customer"}
TARGETS = dict(re.findall(r"^([a-z-]+):(?!=)(.*)$", MAKEFILE, re.MULTILINE))


def test_every_documented_target_is_there_or_comes_later() -> None:
    assert set(DOCUMENTED) - set(TARGETS) == COME_LATER


def test_no_target_is_there_that_nobody_documents() -> None:
    assert set(TARGETS) == (set(DOCUMENTED) - COME_LATER) | set(OURS)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_every_target_says_in_the_help_what_it_does(target: str) -> None:
    assert re.search(r"## \S+", TARGETS[target])


def test_targets_that_run_python_set_it_up_first() -> None:
    alone = {"help", "setup-system", "clean", "ci"}
    ready = ("$(READY)", "$(DEV)", "$(PREPARED)")
    assert all(any(r in TARGETS[t] for r in ready) for t in set(TARGETS) - alone)


def test_what_is_given_to_make_reaches_every_command() -> None:
    """make hands its own variables on to its commands, unless the Makefile says otherwise."""
    assert not re.findall(r"^\s*(?:override |unexport |export )*(?:DATASET|MODE)\b", MAKEFILE, re.M)


def test_only_down_and_clean_remove_data_and_only_unasked_without_a_terminal() -> None:
    assert recipe("stop") == ["$(HG) local down"]
    assert recipe("restart") == ["$(MAKE) stop", "$(MAKE) up"]
    assert TARGETS["clean"].split()[0] == "down"
    (line,) = recipe("down")
    assert line == '$(HG) local down --remove-data $$([ -z "$(YES)" ] && [ -t 0 ] || echo --yes)'
    assert len(re.findall(r"--remove-data", MAKEFILE)) == 1


def test_demos_need_no_tool_of_developers() -> None:
    assert all(TARGETS[t].split()[0] == "$(PREPARED)" for t in TARGETS if t.startswith("demo"))
    assert (
        "requirements/dev.txt" not in re.findall(r"^\$\(READY\):(.*)$", MAKEFILE, re.MULTILINE)[0]
    )


def recipe(target: str) -> list[str]:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE)
    return [line.strip() for line in found[1].splitlines()] if found else []


def test_no_target_has_a_recipe_longer_than_three_lines() -> None:
    blocks = re.findall(r"^([a-z-]+):(?!=).*\n((?:\t.*\n)*)", MAKEFILE, re.MULTILINE)
    assert not {name for name, recipe in blocks if recipe.count("\n") > 3}


@pytest.mark.parametrize(("program", "line"), COMMANDS)
def test_every_line_is_a_command_that_exists(program: str, line: str) -> None:
    group = PROGRAMS[program]
    name, *rest = line.split()
    assert name in group.list_commands(click.Context(group))
    command = group.get_command(click.Context(group), name)
    if isinstance(command, click.Group) and rest:
        command = command.get_command(click.Context(command), rest.pop(0))
    assert command is not None
    last = line.split()[-1]
    command.make_context(line, [*rest, *([VALUES[last]] if last in VALUES else [])])
