"""How a record becomes an event, as Spark SQL: the columns, or why it is refused.

The value is parsed between brackets, as the one element of a list: so that a second value behind the
first, which Spark's reader would not look at, is no JSON. Between brackets alone `{…}] …` would pass,
so the same is asked once more inside an object.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.compile.rules.statement import case, indented, nested, select
from headgate.expr.json_conditions import TEXT, VALUE
from headgate.expr.literals import spark_identifier, spark_literal
from headgate.expr.spark import to_spark
from headgate.expr.tree import Column, Expr, Function, Literal, mapped, walk
from headgate.spec.filter import COLUMNS, NUMBER_COLUMN
from headgate.spec.types import STRING

TOMBSTONE = "tombstone"
REASONS: dict[str, str] = {
    "not_utf8": "the value is not UTF-8 text",
    "empty": "the value is empty",
    "not_json": "the value is not one JSON value, or has a field twice",
    "not_an_object": "the value is JSON but not an object",
    "wrong_type": "a column has a value without a text of its type",
    "no_id": "the event has no id",
}
BLANKS = " \t\r\n"
# Of these kinds a value has a text that does not depend on how Java prints it.
KINDS = r"^(STRING|BOOLEAN|BIGINT|DECIMAL\\(.*)$"
JSON = (TEXT, VALUE)
RECORD = ("partition", "offset", "timestamp", "value")
_EVENT = "_event"


def json_text(document: str, path: str) -> str:
    """The text of a value of a parsed document: text, true or false, or a number in plain digits."""
    value = f"try_variant_get({document}, {path}, 'variant')"
    text = f"try_variant_get({document}, {path}, 'string')"
    return f"IF(schema_of_variant({value}) RLIKE '{KINDS}', {text}, NULL)"


def json_value(document: str, path: str) -> str:
    """The value in some text, NULL where there is none."""
    return f"try_variant_get({document}, {path}, 'string')"


def paths_of(condition: Expr) -> list[Function]:
    """The values inside the JSON column that a condition asks for, each once, in order."""
    found = [node for node in walk(condition) if isinstance(node, Function) and node.name in JSON]
    return sorted(set(found), key=to_spark)


def path_sql(document: str, node: Function) -> str:
    """What stands at the path of a parsed document."""
    made = json_text if node.name == TEXT else json_value
    return made(document, to_spark(node.arguments[1]))


def path_column(node: Function) -> str:
    """What a person calls it: `header_data.dealerId`, or the value there whatever its kind."""
    document, path = node.arguments
    name = to_spark(document) + str(path.value if isinstance(path, Literal) else "").lstrip("$")
    return name if node.name == TEXT else f"value of {name}"


def with_columns(condition: Expr, names: Mapping[Function, str]) -> Expr:
    """The condition over columns that hold the values at its paths."""

    def change(node: Expr) -> Expr:
        name = names.get(node) if isinstance(node, Function) else None
        return node if name is None else Column(name, STRING)

    return mapped(condition, change)


def beside(source: str, columns: Mapping[str, str], alias: str) -> str:
    """The rows of `source` with columns that are computed once, whoever asks for them.

    A plain SELECT would not do: what is asked of its columns is pushed below it, and the expressions
    with it, so that every record would be parsed dozens of times.
    """
    fields = [f"{spark_literal(name)}, {value}" for name, value in columns.items()]
    return (
        f"SELECT *\nFROM {source}\n"
        f"LATERAL VIEW inline(array(named_struct(\n{indented(fields)}\n))) {alias}"
    )


def parsed(source: str) -> str:
    """The records with their value as text and as JSON."""
    text = "CAST(value AS STRING)"
    inner = select([*RECORD, f"{text} AS _text"], f"FROM {source}")
    made = {_EVENT: f"try_parse_json(concat('[', {text}, ']'))"}
    return beside(nested(inner), made, "parsed")


def read(source: str) -> str:
    """The parsed records with the columns of their event, and `refusal` where they have none."""
    columns = beside(source, {name: _column(name) for name in COLUMNS}, "fields")
    return beside(nested(columns), {"refusal": _refusals()}, "judged")


def _column(name: str) -> str:
    path = spark_literal(f"$[0].{name}")
    if name == NUMBER_COLUMN:
        return f"try_cast({json_value(_EVENT, path)} AS BIGINT)"
    return json_text(_EVENT, path)


def _refusals() -> str:
    keys = """json_object_keys(concat('{"v":', _text, '}'))"""
    blanks = spark_literal(BLANKS)
    branches = [
        ("value IS NULL", TOMBSTONE),
        ("NOT is_valid_utf8(_text)", "not_utf8"),
        (f"trim(BOTH {blanks} FROM _text) = ''", "empty"),
        (f"{_EVENT} IS NULL OR coalesce(size({keys}), 0) <> 1", "not_json"),
        (f"NOT startswith(ltrim({blanks}, _text), '{{')", "not_an_object"),
        ("\n    OR ".join(_mistyped(column) for column in COLUMNS), "wrong_type"),
        ("id IS NULL OR id = ''", "no_id"),
    ]
    return case([(condition, f"'{code}'") for condition, code in branches])


def _mistyped(column: str) -> str:
    """Something stands there, and is no text: an object, a list, or a number with an exponent."""
    there = json_value(_EVENT, spark_literal(f"$[0].{column}"))
    return f"({spark_identifier(column)} IS NULL AND {there} IS NOT NULL)"
