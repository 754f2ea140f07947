"""Bronze: the fragments that turn a topic's JSON into typed rows, or into dead letters."""

from __future__ import annotations

from collections.abc import Collection

from headgate.compile import drift, far
from headgate.compile.casts import tried
from headgate.compile.fragments import (
    TABLE_PROPERTIES,
    branch,
    call,
    hanging,
    lines,
    properties,
    schema,
)
from headgate.compile.records import Records
from headgate.compile.shape import usual_shape
from headgate.expr.literals import spark_identifier, spark_literal
from headgate.spec.dataset import Column
from headgate.spec.types import SqlType

UNPARSED = "_unparsed"
# Names of the views' own columns: a field of the event cannot have them.
OWN_NAMES = frozenset(
    f"kafka_key kafka_value kafka_headers kafka_text {UNPARSED} _shape _reason_code _raw _typed"
    f" _unread _drift {drift.EXTRA} {drift.MISSING}".split()
)
_DATES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
_LOOSE = ("STRING", "DECIMAL", *_DATES)
# Half a surrogate pair, written as an escape: Java would silently read it as a question mark.
_HALF_PAIR = (
    r"r'(?i)(?<!\\)(?:\\\\)*(?:\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f][0-9a-f]{2})'",
    r"r'|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2})'",
)

REASONS: dict[str, str] = {
    "not_utf8": "the value is not UTF-8 text",
    "empty": "the value is empty",
    "duplicate_key": "a field stands twice in the record",
    "not_json": "the value is not JSON",
    "not_an_object": "the value is JSON but not an object",
    "trailing_text": "something follows the JSON object",
    "half_surrogate": "an escape is half of a surrogate pair",
    "wrong_type": "a field does not have its declared type",
    "out_of_range": "a number is too large for its type",
}
# A number that became infinite where any JSON value may stand; a text can look like one.
_INFINITE = (
    r"kafka_text RLIKE r'[0-9][eE]\+?[0-9]{3}|[0-9]{309}'",
    r"AND to_json(try_parse_json(kafka_text)) RLIKE '\"-?Infinity\"'",
)
_UNREAD_FIELDS = "field -> concat(field.key, ' = ', left(field.value, 40))"


def json_type(column: Column) -> SqlType:
    """The type the JSON reader gives: times are read from their text by the reader itself."""
    if column.kafka_type.name == "STRING" and column.bronze_type.name in _DATES:
        return column.bronze_type
    return column.kafka_type


def read_options(dataset: Records) -> dict[str, str]:
    return {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": UNPARSED,
        "allowNonNumericNumbers": "false",
        "allowSingleQuotes": "false",
        **time_options(dataset),
    }


def time_options(dataset: Records) -> dict[str, str]:
    names = {json_type(column).name for column in dataset.columns}
    chosen = {
        "TIMESTAMP": ("timestampNTZFormat", dataset.ts_format),
        "TIMESTAMP_LTZ": ("timestampFormat", dataset.ts_format),
        # Without a pattern Spark reads a date as a cast does: "2024" would be its first of January.
        "DATE": ("dateFormat", "yyyy-MM-dd"),
    }
    return dict(option for name, option in chosen.items() if name in names)


def json_schema(dataset: Records) -> str:
    fields = [f"{spark_identifier(c.name)} {json_type(c).spark}" for c in dataset.columns]
    return schema([*fields, f"{UNPARSED} STRING"])


def shape(dataset: Records, evolved: Collection[str] = (), beside: str = "") -> str:
    """Whether the record is known to be sound, with all declared fields or with some of them."""
    fields = [(column, json_type(column)) for column in dataset.columns]
    shapes = {"whole": usual_shape(fields, evolved, beside)}
    if dataset.keeps_drift:
        every = [column.name for column in dataset.columns]
        shapes["partial"] = usual_shape(fields, every, beside)
    if not shapes["whole"]:
        return "CAST(NULL AS STRING)"
    doubts = [f"{UNPARSED} IS NOT NULL", "NOT is_valid_utf8(kafka_text)"]
    doubts += [_lost(column) for column in _cast(dataset)]
    branches = [branch("\nOR ".join(doubts), "NULL")]
    branches += [branch(_matches(parts), f"'{name}'") for name, parts in shapes.items()]
    told = hanging("\n".join(branches))
    return f"CASE\n  {told}\nEND"


def _matches(parts: tuple[str, ...]) -> str:
    return "\n".join(["kafka_text RLIKE", *(f"  r'{part}'" for part in parts)])


def judgement(dataset: Records, evolved: Collection[str] = ()) -> str:
    """The branches in the order in which they are tried: sound, or why it is refused."""
    return "\n".join([branch("_shape IS NOT NULL", "NULL"), refusals(dataset, evolved)])


def refusals(dataset: Records, evolved: Collection[str] = ()) -> str:
    """What is asked of a record that is not known to be sound."""
    keys = "json_object_keys(kafka_text)"
    one_in_list = "coalesce(json_array_length(concat('[', kafka_text, ']')), 0) <> 1"
    one_in_object = """coalesce(size(json_object_keys(concat('{"v":', kafka_text, '}'))), 0) <> 1"""
    branches = [
        ("NOT is_valid_utf8(kafka_text)", "not_utf8"),
        (r"trim(BOTH ' \t\r\n' FROM kafka_text) = ''", "empty"),
        (f"size({keys}) > size(array_distinct({keys}))", "duplicate_key"),
        ("try_parse_json(kafka_text) IS NULL", "not_json"),
        (f"{keys} IS NULL", "not_an_object"),
        (f"{one_in_list}\nOR {one_in_object}", "trailing_text"),
        ("\n".join(("kafka_text RLIKE", *_HALF_PAIR)), "half_surrogate"),
        *((far.condition(fields), far.CODE) for fields in [far.names(dataset)] if fields),
        (f"{UNPARSED} IS NOT NULL", "wrong_type"),
        *((condition, "wrong_type") for condition in _mistyped(dataset)),
        *((condition, "out_of_range") for condition in _infinite(dataset)),
        *drift.refusals(dataset, evolved),
    ]
    return "\n".join(branch(condition, f"'{code}'") for condition, code in branches)


def _mistyped(dataset: Records) -> list[str]:
    """What the reader lets pass although it is not of the declared type."""
    wrong = "\n  OR ".join(_wrong_kind(c) for c in _loosely_read(dataset))
    found = call("exists", [call("array", [_kinds(dataset)]), f"_typed ->\n  {wrong}"])
    lost = [_lost(column) for column in _cast(dataset)]
    return [*([found] if wrong else ()), *lost]


def _loosely_read(dataset: Records) -> list[Column]:
    """The reader turns any value into text and a number into a time, and it rounds decimals."""
    return [c for c in dataset.columns if json_type(c).name in _LOOSE]


def _kinds(dataset: Records) -> str:
    """Those fields with the types that they have in the record."""
    fields = [f"{spark_identifier(c.name)} VARIANT" for c in _loosely_read(dataset)]
    return call("from_json", ["kafka_text", schema(fields)])


def _wrong_kind(column: Column) -> str:
    """By its text: to describe a deeply nested value, Spark would need more stack than it has."""
    kind, name = json_type(column), spark_identifier(column.name)
    if kind.name != "DECIMAL":
        return f"""left(to_json(_typed.{name}), 1) NOT IN ('"', 'n')"""
    exact = f"decimal(38, {38 - (kind.precision or 0) + (kind.scale or 0)})"
    return (
        f"""left(to_json(_typed.{name}), 1) = '"'"""
        f"\n  OR {name} <> try_variant_get(_typed.{name}, '$', '{exact}')"
        f"\n  OR {name} <> try_variant_get(_typed.{name}, '$', 'double')"
    )


def _cast(dataset: Records) -> list[Column]:
    """The columns whose values are not read as what they are in bronze."""
    plain = (c for c in dataset.columns if c.kafka_type.name != "JSON")
    return [column for column in plain if json_type(column) != column.bronze_type]


def _lost(column: Column) -> str:
    return f"{spark_identifier(column.name)} IS NOT NULL AND {bronze_value(column)} IS NULL"


def _infinite(dataset: Records) -> list[str]:
    floats = [c for c in dataset.columns if json_type(c).name in ("DOUBLE", "FLOAT")]
    names = call("array", [spark_identifier(c.name) for c in floats])
    found = call("exists", [names, "number -> abs(number) = DOUBLE('Infinity')"])
    return [*([found] if floats else ()), "\n".join(_INFINITE)]


def bronze_value(column: Column) -> str:
    name = spark_identifier(column.name)
    if column.kafka_type.name == "JSON":
        return f"nullif(to_json({name}), 'null')"
    if json_type(column) == column.bronze_type:
        return name
    return tried(column.name, column.kafka_type, column.bronze_type)


def bronze_values(dataset: Records, evolved: Collection[str] = ()) -> str:
    values = [_named(column) for column in dataset.columns]
    return lines([*values, *drift.own_values(dataset, evolved)])


def _named(column: Column) -> str:
    value, name = bronze_value(column), spark_identifier(column.name)
    return value if value == name else f"{value} AS {name}"


def bronze_columns(dataset: Records) -> str:
    columns = [
        f"{spark_identifier(c.name)} {c.bronze_type.spark}"
        + (f" COMMENT {spark_literal(c.comment)}" if c.comment else "")
        for c in dataset.columns
    ]
    return lines([*columns, *drift.own_column_types(dataset)])


def bronze_properties(dataset: Records) -> str:
    return properties({**TABLE_PROPERTIES, **drift.own_properties(dataset)})


def text_fields(dataset: Records) -> str:
    """The record as it was written: every field as text, and some with their own types."""
    texts = ["from_json(kafka_text, 'MAP<STRING, STRING>') AS _raw"]
    kinds = [f"{_kinds(dataset)} AS _typed"] if _loosely_read(dataset) else []
    return lines([*texts, *kinds])


def unread_fields(dataset: Records) -> str:
    """The text of each field that has one but not of its type, by the field's name."""
    readable = (c for c in dataset.columns if c.kafka_type.name != "JSON")
    texts = [f"{spark_literal(c.name)}, {_unread(c)}" for c in readable]
    if not texts:
        return "CAST(map() AS MAP<STRING, STRING>)"
    return call("map_filter", [call("map", texts), "(name, text) -> text IS NOT NULL"])


def _unread(column: Column) -> str:
    conditions = [f"{bronze_value(column)} IS NULL"]
    if json_type(column).name in _LOOSE:
        conditions.append(_wrong_kind(column))
    text = f"_raw[{spark_literal(column.name)}]"
    return call("if", ["\n  OR ".join(conditions), text, "NULL"])


def reason_words(dataset: Records) -> str:
    """Words for the reader; for a wrong type also the fields that could not be read."""
    fields = call("transform", ["map_entries(_unread)", _UNREAD_FIELDS])
    words = {code: spark_literal(said) for code, said in REASONS.items()}
    words["wrong_type"] = call("concat_ws", ["'; '", words["wrong_type"], fields])
    words |= drift.words(dataset)
    if far.names(dataset):
        words[far.CODE] = spark_literal(far.WORDS)
    branches = "\n".join(branch(f"'{code}'", said) for code, said in words.items())
    return f"CASE _reason_code\n  {hanging(branches)}\nEND"
