"""The API client of the commands (address and key from the settings), and how a filter is shown."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.terminal.console import as_table, in_one_line

if TYPE_CHECKING:
    from headgate.config.settings import Settings
    from headgate.filters.api.client import Client
    from headgate.filters.api.models import FilterOut

SHORT = 12


@contextmanager
def asked(seconds: float = 30.0) -> Generator[Client]:
    """The API that the settings name, else the server of this home, else the usual port."""
    from headgate.config.settings import load_settings
    from headgate.filters.api.client import Client

    settings = load_settings(anywhere=True)
    with Client(url_of(settings), settings.api_key, seconds) as client:
        yield client


def url_of(settings: Settings) -> str:
    import orjson

    if settings.api_url:
        return settings.api_url
    try:
        return str(orjson.loads((settings.home / "api.json").read_bytes())["url"])
    except (OSError, ValueError, KeyError):
        return f"http://127.0.0.1:{settings.api_port}"


def read_document(path: Path) -> dict[str, Any]:
    """The file as it is sent, once it is known to be valid: here a fault still has its line."""
    import orjson

    from headgate.filters.loader import load_filter

    load_filter(path)
    return orjson.loads(path.read_bytes())


def table(filters: Sequence[FilterOut]) -> str:
    return as_table(
        [
            {
                "id": one.id,
                "status": one.status.value + (" (paused)" if one.paused else ""),
                "version": one.version,
                "live": one.deployed_version or "",
                "topic": one.output_topic,
                "author": one.author,
                "updated": moment(one.updated_at),
            }
            for one in filters
        ]
    )


def described(one: FilterOut) -> str:
    """A filter for a person: what it is, how it stands, what can be done."""
    lines = [
        f"{one.id}: {one.name}",
        f"  status    {one.status}{' (paused)' if one.paused else ''}, version {one.version}, revision {one.revision[:SHORT]}",
        f"  author    {one.author}, {moment(one.written_at)}",
        f"  approved  {one.approved_by or 'no'}{', ' + moment(one.approved_at) if one.approved_at else ''}",
        f"  live      {f'version {one.deployed_version}, since {moment(one.deployed_at)}' if one.deployed_version else 'no'}",
        f"  topics    {one.source} -> {one.output_topic}, for {one.consumer_id}",
    ]
    if one.deployment_error:
        lines.append(f"  trouble   {one.deployment_error}")
    lines.append(f"  changed   {moment(one.updated_at)}")
    lines.append(f"  allowed   {', '.join(one.allowed) or 'nothing'}")
    lines.append(f"  tag       {one.etag}")
    return "\n".join(in_one_line(line) for line in lines)


def document_of(one: FilterOut) -> dict[str, Any]:
    """What was declared, with its version: a file to change and to submit again."""
    from headgate.filters.spec import STATUS_FIELDS, Filter

    told = one.model_dump(mode="json", by_alias=True)
    names = (field.alias or name for name, field in Filter.model_fields.items())
    declared = [name for name in names if name not in STATUS_FIELDS]
    return {name: told[name] for name in (*declared, "version")}


def conditions(one: FilterOut) -> str:
    """What it asks of an event, as it was written."""
    import json

    joined = f" ({one.condition_logic})" if len(one.conditions) > 1 else ""
    listed = [json.dumps(condition, ensure_ascii=True) for condition in one.conditions]
    return "\n".join([f"  conditions{joined}", *(f"    {words}" for words in listed)])


def moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}" if at else "never"
