"""Load a dataset manifest, or raise every fault at once, each with its file, line and what to write.

Three passes: the model, references between the parts (read from the document as written, so that a
faulty column does not hide a faulty key list), and the SQL expressions. What refers to a column that
is itself at fault is checked once that is fixed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from headgate.conditions.grammar import ExprError
from headgate.conditions.parser import parse_condition, parse_value
from headgate.declarations.columns import RECORD_TIME, RESERVED_COLUMNS, is_odd_name
from headgate.declarations.document import Document, Plain, read_document, text_of, validate
from headgate.declarations.errors import Declared, Refusal, suggestion
from headgate.declarations.types import TIMESTAMP_LTZ, SqlType, can_cast, parse_type
from headgate.errors import DeclarationError, Fault
from headgate.pipeline.spec import Dataset

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_OWN_NAMESPACE = "headgate"
_PLAIN_NAME = "Use letters, digits and underscores, not beginning with a digit."
Columns = list[tuple[str, dict[str, Plain]]]
_Parse = Callable[[str, Mapping[str, SqlType]], object]


def check_references(document: Document, folder: str | None) -> None:
    """Adds a fault for every name, table, topic or reference that does not fit the others."""
    manifest = document.data if isinstance(document.data, dict) else {}
    columns = _columns(manifest)
    _check_name(document, manifest, folder)
    _check_topics(document, manifest)
    _check_tables(document, manifest)
    _check_column_names(document, columns)
    _check_types(document, columns)
    _check_event_time(document, manifest, columns)
    _check_key_lists(document, manifest, columns)
    _check_silver_names(document, manifest, columns)


def _columns(manifest: Mapping[str, Plain]) -> Columns:
    listed = manifest.get("columns")
    items = listed if isinstance(listed, list) else []
    return [(f"columns[{at}]", item) for at, item in enumerate(items) if isinstance(item, dict)]


def _texts(manifest: dict[str, Plain], keys: Iterable[str]) -> list[tuple[str, str]]:
    return [(key, value) for key in keys if isinstance(value := manifest.get(key), str) and value]


def _check_name(document: Document, manifest: dict[str, Plain], folder: str | None) -> None:
    for key, name in _texts(manifest, ["name"]):
        if not _NAME.fullmatch(name):
            document.add(key, f"`{name}` is not a name for a dataset", _PLAIN_NAME)
        elif folder is not None and name != folder:
            document.add(
                key,
                f"`{name}` stands in the folder `{folder}`",
                f"Write name: {folder}.",
            )


def _check_topics(document: Document, manifest: dict[str, Plain]) -> None:
    topics = [
        (key, topic) for key, topic in _texts(manifest, ["topic", "dlq_topic"]) if "${" not in topic
    ]
    for key, topic in topics:
        if not _TOPIC.fullmatch(topic) or topic in {".", ".."}:
            document.add(
                key,
                f"`{topic}` is not a topic name",
                "Use up to 249 letters, digits, dots, underscores and hyphens.",
            )
    if len(topics) == 2 and topics[0][1] == topics[1][1]:
        document.add("dlq_topic", "dead letters would go back to the topic", "Use another topic.")


def _check_tables(document: Document, manifest: dict[str, Plain]) -> None:
    tables = _texts(manifest, ["bronze_table", "silver_table"])
    for key, table in tables:
        if not _TABLE.fullmatch(table):
            schema = key.partition("_")[0]
            document.add(
                key,
                f"`{table}` is not of the form schema.table",
                f"Write for example {schema}.{table if _IDENTIFIER.fullmatch(table) else 'rows'}.",
            )
        elif table.partition(".")[0] == _OWN_NAMESPACE:
            document.add(
                key,
                f"the schema `{_OWN_NAMESPACE}` holds Headgate's own tables",
                "Use another.",
            )
    if len(tables) == 2 and tables[0][1].lower() == tables[1][1].lower():
        document.add("silver_table", "it is the bronze table as well", "Name another table.")


def _check_column_names(document: Document, columns: Columns) -> None:
    for key in ("name", "silver_name"):
        seen: dict[str, str] = {}
        for place, column in columns:
            for _, name in _texts(column, [key]):
                _check_one_name(document, f"{place}.{key}", name, seen, plain=key == "silver_name")


def _check_one_name(
    document: Document, pointer: str, name: str, seen: dict[str, str], *, plain: bool
) -> None:
    folded = name.lower()
    if folded in RESERVED_COLUMNS:
        document.add(pointer, f"`{name}` is a column that Headgate adds", "Rename this column.")
    elif plain and not _IDENTIFIER.fullmatch(name):
        document.add(pointer, f"`{name}` is not a plain name", _PLAIN_NAME)
    elif is_odd_name(name):
        document.add(
            pointer,
            f"{name!r} has a dot, a quote, `${{` or a control character",
            "Name the field otherwise where the event is made.",
        )
    elif folded in seen:
        # Spark and DuckDB compare column names without regard to case.
        line = document.lines.get(seen[folded])
        document.add(
            pointer,
            f"`{name}` is already the name of the column on line {line}",
            "Use another.",
        )
    seen.setdefault(folded, pointer)


def _check_types(document: Document, columns: Columns) -> None:
    for place, column in columns:
        for source, target in (
            ("kafka_type", "bronze_type"),
            ("bronze_type", "silver_type"),
        ):
            before, after = _type(column, source), _type(column, target)
            if before and after and not can_cast(before, after):
                document.add(
                    f"{place}.{target}",
                    f"{before} cannot become {after}",
                    "Write STRING: a table keeps JSON as its text."
                    if "JSON" in (before.name, after.name)
                    else f"Use the type of {source}, or STRING.",
                )


def _type(column: dict[str, Plain], key: str) -> SqlType | None:
    text = column.get(key)
    try:
        return parse_type(text) if isinstance(text, str) else None
    except Refusal:
        return None


def _check_event_time(document: Document, manifest: dict[str, Plain], columns: Columns) -> None:
    marked = [(place, column) for place, column in columns if column.get("is_event_ts") is True]
    if columns and not marked and manifest.get("event_ts_col") != RECORD_TIME:
        document.add(
            "columns",
            "no column is the event time",
            f"Write is_event_ts: true at exactly one, or event_ts_col: {RECORD_TIME} above.",
        )
    for place, _ in marked[1:]:
        document.add(f"{place}.is_event_ts", "a second event time", "Mark exactly one column.")
    for place, column in marked[:1]:
        _check_event_column(document, manifest, place, column)


def _check_event_column(
    document: Document, manifest: dict[str, Plain], place: str, column: dict[str, Plain]
) -> None:
    for key, named in _texts(manifest, ["event_ts_col"]):
        if named != column.get("name"):
            document.add(
                key,
                f"it names `{named}`, but the event time is marked at `{column.get('name')}`",
                "Name the marked column, or mark the named one.",
            )
    kind = _type(column, "bronze_type")
    if kind is not None and not kind.is_time:
        document.add(f"{place}.bronze_type", f"{kind} is not a time", "Write TIMESTAMP(3).")


def _check_key_lists(document: Document, manifest: dict[str, Plain], columns: Columns) -> None:
    known = [name for _, column in columns for _, name in _texts(column, ["name"])]
    for key in ("dedup_key", "surrogate_key_fields"):
        listed = manifest.get(key)
        seen: set[str] = set()
        for at, name in enumerate(listed if isinstance(listed, list) else []):
            if isinstance(name, str):
                _check_reference(document, f"{key}[{at}]", name, known)
                if name in seen:
                    document.add(f"{key}[{at}]", f"`{name}` is listed twice", "Keep one.")
                seen.add(name)
    for key, name in _texts(manifest, ["key_field"]):
        _check_reference(document, key, name, known)


def _check_reference(document: Document, pointer: str, name: str, known: list[str]) -> None:
    if known and name not in known:
        document.add(pointer, f"there is no column `{name}`", suggestion(name, known, "columns"))


def _check_silver_names(document: Document, manifest: dict[str, Plain], columns: Columns) -> None:
    taken = {
        name.lower(): f"the silver column of {place}"
        for place, column in columns
        for _, name in _texts(column, ["silver_name"])
    } | dict.fromkeys(RESERVED_COLUMNS, "a column that Headgate adds")
    given = _texts(manifest, ["partition_date_col", "surrogate_key_name"])
    if "surrogate_key_name" not in manifest:
        given += [("name", f"{name}_id") for _, name in _texts(manifest, ["name"])]
    for key, name in given:
        if key != "name" and not _IDENTIFIER.fullmatch(name):
            document.add(key, f"`{name}` is not a plain name", _PLAIN_NAME)
        elif name.lower() in taken:
            fix = "Set surrogate_key_name." if key == "name" else "Use another name."
            document.add(key, f"`{name}` is already {taken[name.lower()]}", fix)
        taken.setdefault(name.lower(), f"the name given by {key}")


def load_dataset(path: Path, variables: Mapping[str, str]) -> Declared[Dataset]:
    """The dataset in `path`; raises DeclarationError with all faults."""
    document = read_document(str(path), text_of(path), variables)
    dataset = None
    if isinstance(document.data, dict):
        dataset = validate(Dataset, document)
        check_references(document, folder=_folder(path))
    elif not document.faults:
        document.add("", "the manifest is not a mapping", "Write `key: value` lines.", line=1)
    if document.faults or dataset is None:
        raise DeclarationError(sorted(document.faults, key=lambda fault: fault.line or 0))
    return Declared(dataset, document.file, document.lines)


def _folder(path: Path) -> str | None:
    """The folder that names the dataset; a manifest elsewhere may have any name."""
    return path.parent.name if path.parent.parent.name == "datasets" else None


def load_checked(path: Path, variables: Mapping[str, str]) -> Declared[Dataset]:
    """The dataset in `path`; raises the faults of all its keys, those of expressions among them."""
    try:
        return load_dataset(path, variables)
    except DeclarationError as error:
        more = tuple(_expression_faults(path, variables))
        faults = sorted((*error.faults, *more), key=lambda fault: fault.line or 0)
        raise DeclarationError(faults) from None


def _expression_faults(path: Path, variables: Mapping[str, str]) -> Iterator[Fault]:
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    document = read_document(str(path), text, variables)
    if not isinstance(document.data, dict):
        return
    columns = _bronze_types(document.data)
    types = {name: kind for name, kind in columns.items() if kind} | {RECORD_TIME: TIMESTAMP_LTZ}
    unknown = [name for name, kind in columns.items() if kind is None]
    for pointer, written, parse in _expressions(document.data):
        if not any(name in written for name in unknown):
            yield from _refused(document, pointer, lambda p=parse, w=written: p(w, types))


def _bronze_types(manifest: Mapping[str, Plain]) -> dict[str, SqlType | None]:
    return {
        name: _type(column, "bronze_type")
        for _, column in _columns(manifest)
        if isinstance(name := column.get("name"), str)
    }


def _expressions(manifest: Mapping[str, Plain]) -> Iterator[tuple[str, str, _Parse]]:
    filters = manifest.get("quality_filters")
    for at, text in enumerate(filters if isinstance(filters, list) else []):
        if isinstance(text, str) and text:
            yield f"quality_filters[{at}]", text, parse_condition
    day = manifest.get("partition_date_expr")
    if isinstance(day, str) and day:
        yield "partition_date_expr", day, parse_value


def _refused(document: Document, pointer: str, parse: Callable[[], object]) -> Iterator[Fault]:
    declared = Declared(None, document.file, document.lines)
    try:
        parse()
    except ExprError as error:
        for fault in error.faults:
            yield declared.fault(pointer, fault.what, fault.why, fault.fix)
