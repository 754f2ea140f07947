"""Asking before something is done that cannot be undone."""

from __future__ import annotations

import sys

import click

from headgate.errors import UsageError


def need_terminal(what: str, fix: str = "") -> None:
    """Refuse, in these words, where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError(what, why="no terminal to ask on", fix=fix)


def confirm(question: str, *, yes: bool, otherwise: str) -> None:
    """Go on only after a yes; `otherwise` are the words where nobody can be asked."""
    if yes:
        return
    need_terminal(otherwise)
    ask(question)


def ask(question: str) -> None:
    """Go on only after a yes on the terminal."""
    click.confirm(question, abort=True, err=True)
