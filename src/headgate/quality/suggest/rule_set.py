"""Writes proposed rules as a rule set in YAML, valid as it stands, with the reason for each as a comment."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from headgate.core.profiler.model import ColumnProfile, about_column, about_rows
from headgate.quality.suggest.proposals import Part, Setting, Suggested, Suggestion

WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_YAML_WORDS = frozenset("y n yes no on off true false null".split())


def suggested_text(found: Suggested) -> str:
    parts = [_head(found), _table(found), _part(found, "rules"), _part(found, "aggregates")]
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(found: Suggested) -> Iterator[str]:
    yield f"# Rules suggested by the values of {_comment(Path(found.draft.profile.file).name)}."
    yield from (f"# {line}" for line in about_rows(found.draft.profile))
    yield "# Read each: whether it is a rule or an accident only you can say. Delete what is none, take the #"
    yield "# away where one is wanted, then `headgate rules check` and `headgate rules explain`."
    yield "version: 2"
    yield f"metadata: {{env: local, pipeline: {_scalar(found.place.table)}}}"
    yield f"metrics: {{namespace: {_scalar(f'dq.{found.place.table}')}, window: 1 MINUTE}}"


def _table(found: Suggested) -> Iterator[str]:
    place = found.place
    yield "tables:"
    yield f"  - name: {_scalar(place.table)}"
    if len(found.draft.key.columns) > 1:
        parts = ", ".join(found.draft.key.columns)
        yield from _comments(f"Rows are told apart by {parts}; the key is one of them.", 4)
    yield f"    pk: {_scalar(place.pk)}"
    yield "    sources:"
    yield "      onprem:"
    yield f"        topic: {_scalar(place.topic)}"
    if place.dlq_topic:
        yield f"        dlq_topic: {_scalar(place.dlq_topic)}"
    yield f"        table: {_scalar(f'{place.table}_events')}"
    if place.event_time:
        yield f"        event_time: {_scalar(place.event_time)}"
    yield "        columns:"
    for column in found.columns:
        yield from _column(column, found)


def _column(column: ColumnProfile, found: Suggested) -> Iterator[str]:
    name, kind = _scalar(column.name), _type(column, found)
    if column.name in found.place.sensitive:
        yield f"          # {_comment(column.file_type)}; looks personal or was named so: its values are masked everywhere"
        yield f"          {name}: {{type: {kind}, sensitive: true}}"
        return
    yield from (
        f"          # {_comment(line)}"
        for line in list(about_column(column, found.draft.profile.looked.rows))[:1]
    )
    yield f"          {name}: {kind}"


def _type(column: ColumnProfile, found: Suggested) -> str:
    """As rules see it: times of events are TIMESTAMP(3)."""
    timely = column.name == found.place.event_time or column.bronze_type.startswith("TIMESTAMP")
    kind = "TIMESTAMP(3)" if timely else column.bronze_type
    return f'"{kind}"' if "," in kind else kind


def _part(found: Suggested, part: Part) -> Iterator[str]:
    chosen = found.of(part)
    rows = found.draft.profile.looked.rows
    if any(not one.off for one in chosen):
        yield f"    {part}:"
    elif chosen:
        yield f"    # {part}:"
    for one in chosen:
        before = "      # " if one.off else "      "
        yield from _comments(_why(one, rows), 6)
        yield from _lines(one, before)


def _why(one: Suggestion, rows: int) -> str:
    if one.rows is None:
        return one.why
    if not one.rows:
        return f"{one.why}. It would flag none of {rows:,} rows."
    return f"{one.why}. It would flag {one.rows:,} of {rows:,} rows ({100 * one.rows / rows:.2g}%)."


def _lines(one: Suggestion, before: str) -> Iterator[str]:
    yield f"{before}- name: {_scalar(one.name)}"
    yield from (f"{before}  {key}: {_setting(value)}" for key, value in one.settings.items())


def _setting(value: Setting) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_scalar(item) for item in value)}]"
    return _scalar(value)


def _scalar(value: str | int | float | bool) -> str:
    """A YAML scalar that reads back as exactly this value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _YAML_WORDS:
        return value
    return json.dumps(value, ensure_ascii=not value.isprintable())


def _comments(text: str, indent: int) -> Iterator[str]:
    before = f"{' ' * indent}# "
    yield from textwrap.wrap(
        _comment(text),
        WIDTH,
        initial_indent=before,
        subsequent_indent=before,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _comment(text: str) -> str:
    """Nothing in a comment may end its line or be a character that YAML does not know."""
    return text if text.isprintable() else json.dumps(text)[1:-1]
