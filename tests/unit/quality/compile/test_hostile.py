"""Whatever a declaration says, the compiled file has the statements that were meant and no other."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.random_expressions import HOSTILE_TEXTS

from headgate.core.sql.fragments import comment
from headgate.core.sql.script import parse_script
from headgate.errors import DeclarationError
from headgate.quality.compile.file import compile_table
from headgate.quality.compile.resolve import JudgedTable, load_judged

pytestmark = pytest.mark.heavy

PACKAGE = Path(__file__).parents[4] / "src" / "headgate"
PATH = "p[type='%s'].value"
FORM = """\
version: 2
metadata: {env: "@env@", pipeline: "@pipeline@"}
metrics: {namespace: "@namespace@", window: 1 MINUTE}
tables:
  - name: "@table@"
    pk: id
    sources:
      onprem:
        topic: "@topic@"
        dlq_topic: "@dlq_topic@"
        table: "@view@"
        dc: "@dc@"
        alias: "@alias@"
        pk_path: "@pk_path@"
        columns: {name: STRING, amount: DOUBLE, "@column@": STRING}
    rules:
      - name: "@rule@"
        description: "@description@"
        when: "amount < 0"
        emit: {dq_status: "@status@", metric: "@metric@"}
      - {name: listed, type: lookup_in, field: name, values: ["@value@", other]}
      - {name: matched, type: regex, field: name, pattern: "@pattern@"}
      - {name: filed, type: lookup_in, field: name, values_file: "@values_file@"}
    aggregates:
      - {name: "@aggregate@", description: "@about@", measure: row_count, min: 2}
"""
USUAL = {
    "env": "test",
    "pipeline": "tests",
    "namespace": "dq.tests",
    "table": "things",
    "topic": "things",
    "dlq_topic": "things.dlq",
    "view": "things_seen",
    "dc": "local",
    "alias": "t1",
    "pk_path": PATH % "PK",
    "column": "other",
    "rule": "negative",
    "description": "below zero",
    "status": "NEGATIVE",
    "metric": "below",
    "value": "one",
    "pattern": "^a",
    "values_file": "known.json",
    "aggregate": "enough",
    "about": "rows",
}
# Tried with every hostile text; the others are compared, looked up or used as these are.
FREE = ("description", "value")
LINE_ENDS = ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\x00")
HOSTILE = (
    *HOSTILE_TEXTS,
    *(f"x{end}FOO; DROP TABLE lake.silver.orders;{end}-- " for end in LINE_ENDS),
    *(f"x{end}-- step: accept{end}DROP TABLE y;{end}" for end in LINE_ENDS[:2]),
    *("x\\", "\\\n; DROP TABLE y; --", "*/; DROP TABLE y; /*", "';DROP TABLE y;--", "`;DROP x;`"),
    *("\ud800", "a\0b", "../../x", "x" * 300, "$${TOPIC}", "$${x}"),
    *("x\n; DROP TABLE y;\n-- ", "x\r; DROP TABLE y;\r-- ", "'; DROP TABLE y; -- ", "x y", "A-b"),
)


def written(folder: Path, **given: str) -> Path:
    (folder / "known.json").write_text('["a", "b"]')
    path = folder / "rules.yml"
    values = {key: re.sub(r"\W", escaped, v) for key, v in (USUAL | given).items()}
    path.write_text(re.sub(r"@(\w+)@", lambda found: values[found[1]], FORM))
    return path


def escaped(letter: re.Match[str]) -> str:
    return f"\\U{ord(letter[0]):08x}"


def shape(judged: JudgedTable, file: str = "rules.yml") -> list[tuple[str, str]]:
    """The part and the verb of every statement, with a count that needs no parsing beside it."""
    text = compile_table(judged, file).text
    bare = re.sub(r"'(?:\\.|[^'\\])*'|`[^`]*`|--[^\n\r]*", "", text)
    steps = parse_script("x.sql", text).steps
    assert bare.count(";") == len(steps)
    return [(step.name, step.sql.split(maxsplit=1)[0]) for step in steps]


@pytest.mark.parametrize("key", USUAL)
def test_a_hostile_text_is_refused_or_changes_no_statement(tmp_path: Path, key: str) -> None:
    usual = shape(load_judged(written(tmp_path), {}).tables[0])
    texts = HOSTILE if key in FREE else HOSTILE[-10:]
    for text in (PATH % text for text in HOSTILE) if key == "pk_path" else texts:
        try:
            found = load_judged(written(tmp_path, **{key: text}), {})
        except DeclarationError:
            continue
        assert shape(found.tables[0]) == usual, text


@pytest.mark.parametrize("end", LINE_ENDS)
def test_a_path_with_a_line_end_is_refused(tmp_path: Path, end: str) -> None:
    path = PATH % f"x{end}FOO; DROP TABLE lake.silver.orders;{end}-- "
    with pytest.raises(DeclarationError) as caught:
        load_judged(written(tmp_path, pk_path=path), {})
    assert caught.value.faults[0].field == "tables[0].sources.onprem.pk_path"


def test_what_no_check_has_seen_changes_no_statement_either(tmp_path: Path) -> None:
    judged = load_judged(written(tmp_path), {}).tables[0]
    usual, table, rule_set = shape(judged), judged.table, judged.rule_set
    for text in (text for text in HOSTILE if text != "\ud800"):
        words = f"x{text}x"
        path = PATH % re.sub(r"['\[\]]", "", words)
        source = replace(table.first, dc=words, pk_path=path)
        hostile = replace(
            judged,
            rule_set=replace(rule_set, metadata=replace(rule_set.metadata, env=words)),
            table=replace(table, sources={"onprem": source}),
            rules=tuple(replace(rule, name=text, reason=text) for rule in judged.rules),
        )
        assert shape(hostile, file=f"{text}/rules.yml{text}") == usual, text


@pytest.mark.parametrize("text", HOSTILE)
def test_a_comment_is_one_line(text: str) -> None:
    made = comment(text)
    assert made.startswith("-- ")
    assert len(made.splitlines()) == 1
    assert not made.endswith("\\")


def test_free_text_comes_into_comments_by_one_function() -> None:
    compilers = [PACKAGE / "core" / "sql", *PACKAGE.glob("*/compile")]
    sources = {path.name: path.read_text() for folder in compilers for path in folder.rglob("*.py")}
    assert {name for name, text in sources.items() if "-- {" in text} == {"fragments.py"}
