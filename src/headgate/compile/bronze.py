"""Bronze: the fragments that turn a topic's JSON into typed rows, or into dead letters."""

from __future__ import annotations

from headgate.compile.fragments import lines, options
from headgate.expr.literals import spark_identifier, spark_literal
from headgate.spec.dataset import Column, Dataset
from headgate.spec.types import SqlType

UNPARSED = "_unparsed"
_DATES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
# Half a surrogate pair, written as an escape: Java would silently read it as a question mark.
_HALF_PAIR = (
    r"(?i)(?<!\\)(?:\\\\)*(?:\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f][0-9a-f]{2})"
    r"|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2})"
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


def json_type(column: Column) -> SqlType:
    """The type the JSON reader gives: times are read from their text by the reader itself."""
    if column.kafka_type.name == "STRING" and column.bronze_type.name in _DATES:
        return column.bronze_type
    return column.kafka_type


def read_options(dataset: Dataset) -> dict[str, str]:
    return {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": UNPARSED,
        "allowNonNumericNumbers": "false",
        "allowSingleQuotes": "false",
        **time_options(dataset),
    }


def write_options(dataset: Dataset) -> dict[str, str]:
    return {"ignoreNullFields": "false", **time_options(dataset)}


def time_options(dataset: Dataset) -> dict[str, str]:
    names = {json_type(column).name for column in dataset.columns}
    chosen = {"TIMESTAMP": "timestampNTZFormat", "TIMESTAMP_LTZ": "timestampFormat"}
    return {option: dataset.ts_format for name, option in chosen.items() if name in names}


def json_schema(dataset: Dataset) -> str:
    fields = [f"{quoted(c.name)} {json_type(c).spark}" for c in dataset.columns]
    return spark_literal(", ".join([*fields, f"{UNPARSED} STRING"]))


def quoted(name: str) -> str:
    """A name inside a schema text, where every name may stand in backticks."""
    return "`" + name.replace("`", "``") + "`"


def refusals(dataset: Dataset) -> str:
    """The branches after the quick one, in the order in which they are tried."""
    keys = "json_object_keys(kafka_text)"
    one_in_list = "coalesce(json_array_length(concat('[', kafka_text, ']')), 0) <> 1"
    one_in_object = (
        """coalesce(size(json_object_keys(concat('{"v":', kafka_text, '}'))), 0) <> 1"""
    )
    branches = [
        ("NOT is_valid_utf8(kafka_text)", "not_utf8"),
        ("trim(kafka_text) = ''", "empty"),
        (f"size({keys}) > size(array_distinct({keys}))", "duplicate_key"),
        ("try_parse_json(kafka_text) IS NULL", "not_json"),
        (f"{keys} IS NULL", "not_an_object"),
        (f"{one_in_list} OR {one_in_object}", "trailing_text"),
        (f"kafka_text RLIKE {spark_literal(_HALF_PAIR)}", "half_surrogate"),
        (f"{UNPARSED} IS NOT NULL", "wrong_type"),
        *((condition, "wrong_type") for condition in _mistyped(dataset)),
        *((condition, "out_of_range") for condition in _infinite(dataset)),
    ]
    return "\n".join(f"    WHEN {condition} THEN '{code}'" for condition, code in branches)


def _mistyped(dataset: Dataset) -> list[str]:
    """Text fields that came as something else, and values that their bronze type cannot hold."""
    texts = [c for c in dataset.columns if json_type(c).name == "STRING"]
    found: list[str] = []
    if texts:
        schema = spark_literal(", ".join(f"{quoted(c.name)} VARIANT" for c in texts))
        kinds = ", ".join(
            f"schema_of_variant(from_json(kafka_text, {schema}).{spark_identifier(c.name)})"
            for c in texts
        )
        found.append(
            f"exists(array({kinds}), kind -> kind NOT IN ('STRING', 'VOID'))"
        )
    for c in dataset.columns:
        if json_type(c) != c.bronze_type:
            name = spark_identifier(c.name)
            found.append(f"{name} IS NOT NULL AND {bronze_value(c)} IS NULL")
    return found


def _infinite(dataset: Dataset) -> list[str]:
    floats = [c for c in dataset.columns if json_type(c).name in ("DOUBLE", "FLOAT")]
    if not floats:
        return []
    names = ", ".join(spark_identifier(c.name) for c in floats)
    return [f"exists(array({names}), number -> abs(number) = DOUBLE('Infinity'))"]


def bronze_value(column: Column) -> str:
    name = spark_identifier(column.name)
    if json_type(column) == column.bronze_type:
        return name
    return f"try_cast({name} AS {column.bronze_type.spark})"


def bronze_values(dataset: Dataset) -> str:
    return lines(
        bronze_value(c) if json_type(c) == c.bronze_type else f"{bronze_value(c)} AS {spark_identifier(c.name)}"
        for c in dataset.columns
    )


def bronze_columns(dataset: Dataset) -> str:
    return lines(
        f"{spark_identifier(c.name)} {c.bronze_type.spark}"
        + (f" COMMENT {spark_literal(c.comment)}" if c.comment else "")
        for c in dataset.columns
    )


def reason_words(dataset: Dataset) -> str:
    """Words for the reader; for a wrong type also the fields that did not parse."""
    texts = spark_literal(", ".join(f"{quoted(c.name)} STRING" for c in dataset.columns))
    suspects = ",\n".join(
        f"      CASE WHEN {spark_identifier(c.name)} IS NULL"
        f" THEN concat({spark_literal(c.name + ' = ')}, left(raw.{spark_identifier(c.name)}, 40)) END"
        for c in dataset.columns
    )
    branches = "\n".join(
        f"    WHEN '{code}' THEN {spark_literal(words)}"
        for code, words in REASONS.items()
        if code != "wrong_type"
    )
    return f"""  CASE reason_code
{branches}
    ELSE concat({spark_literal(REASONS["wrong_type"] + ": ")}, concat_ws(', ', transform(
      array(from_json(kafka_text, {texts})), raw -> concat_ws(', ', array(
{suspects}
    )))))
  END"""
