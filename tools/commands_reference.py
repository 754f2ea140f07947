"""Writes docs/reference/commands.md from the command line itself: `python tools/commands_reference.py`."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from headgate.app import NOUNS
from headgate.cli.main import cli

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"
INTRODUCTION = """# Commands

<!-- Written by tools/commands_reference.py from the commands themselves; do not edit it by hand. -->

A noun, then a verb: `headgate job run bronze`. Data go to stdout; progress, warnings and questions
go to stderr. Nothing is asked where there is no terminal: there, verbs that remove something need
`--yes`. `make help` lists the make targets; each is a line or two of what stands here.

These options stand before the noun, as in `headgate -o json job list`:
"""
EXIT_CODES = """
| exit code | meaning |
|---|---|
| 0 | done, or nothing to do |
| 1 | the operation ran and failed |
| 2 | wrong usage |
| 3 | a manifest or setting is not valid |
| 5 | a check found a difference |
| 6 | conflict: someone else holds it or changed it first |
| 7 | not authenticated or not allowed |
| 8 | something needed is away (broker, catalog, engine): a retry may help |
| 130 | interrupted; what was begun can be resumed |

Every error has a code, explained in [errors.md](errors.md).
"""
EXAMPLES = "Examples:"
KINDS: dict[type[click.ParamType], str] = {
    click.types.StringParamType: "text",
    click.types.IntParamType: "whole number",
    click.IntRange: "whole number",
    click.types.FloatParamType: "number",
    click.FloatRange: "number",
    click.Path: "path",
}


def page() -> str:
    """The whole page."""
    sections = [section for noun in sorted(NOUNS) for section in _noun(noun)]
    return "\n".join([INTRODUCTION, *_options(_context(cli, "headgate")), EXIT_CODES, *sections])


def _noun(noun: str) -> Iterator[str]:
    command = cli.get_command(_context(cli, "headgate"), noun)
    if command is None:
        raise LookupError(noun)
    context = _context(command, f"headgate {noun}")
    yield f"## {noun}\n"
    if not isinstance(command, click.Group):
        yield from _described(context)
        return
    yield from _told(command)
    for verb in command.list_commands(context):
        inner = command.get_command(context, verb)
        if inner is not None and not inner.hidden:
            yield f"### {noun} {verb}\n"
            yield from _described(_context(inner, f"headgate {noun} {verb}"))


def _context(command: click.Command, path: str) -> click.Context:
    return click.Context(command, info_name=path)


def _described(context: click.Context) -> Iterator[str]:
    """How it is called, what it does, its options and examples."""
    options = list(_options(context))
    pieces = context.command.collect_usage_pieces(context)[0 if options else 1 :]
    yield f"```\n{' '.join([context.command_path, *pieces])}\n```\n"
    yield from _told(context.command, options)


def _told(command: click.Command, options: list[str] | None = None) -> Iterator[str]:
    words, _, examples = cleandoc(command.help or "").replace("\b\n", "").partition(EXAMPLES)
    yield words.strip().replace("<", "&lt;") + "\n"
    if options:
        yield from (*options, "")
    if examples:
        yield f"```bash\n{cleandoc(examples)}\n```\n"


def _options(context: click.Context) -> Iterator[str]:
    """A table of the options; `--help` is everywhere and stands nowhere."""
    own = [p for p in context.command.params if isinstance(p, click.Option) and not p.hidden]
    if own:
        yield "| option | takes | what it says | default |\n|---|---|---|---|"
    for option in own:
        names = "`, `".join([*option.opts, *option.secondary_opts])
        given = f"`{option.default}`" if option.show_default else ""
        yield f"| `{names}` | {_takes(option)} | {option.help or ''} | {given} |"


def _takes(option: click.Option) -> str:
    if option.is_flag:
        return ""
    if isinstance(option.type, click.Choice):
        return ", ".join(f"`{choice}`" for choice in option.type.choices)
    kind = option.metavar or KINDS.get(type(option.type), option.type.name)
    return f"{kind}, repeatable" if option.multiple else kind


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
