from __future__ import annotations

from pathlib import Path

import pytest

from headgate.declarations.errors import Refusal
from headgate.errors import DeclarationError
from headgate.hashing.contract import contract_files, contract_of, load_contract
from headgate.hashing.types import parse_hash_type

ROOT = Path(__file__).parents[3]


def loaded(folder: Path, text: str) -> str:
    file = folder / "x.hash.yml"
    file.write_text(text)
    return load_contract(file).value.in_one_line


def faults(folder: Path, text: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(DeclarationError) as refused:
        loaded(folder, text)
    return [(fault.line, fault.field, fault.what) for fault in refused.value.faults]


def test_the_shipped_contract_hashes_four_columns_by_version_2() -> None:
    (file,) = contract_files(ROOT)
    contract = load_contract(file).value
    assert (contract.name, contract.hash_version) == ("business_table", 2)
    assert contract.in_one_line == ("col1:string,col2:decimal(2),col3:timestamp(ms),col4:double(6)")


@pytest.mark.parametrize(
    "text",
    [
        "string",
        "string(nfc,trim,nulls_empty)",
        "decimal",
        "decimal(0)",
        "double(15)",
        "timestamp(us)",
        "binary(nulls_empty)",
        "list<decimal(2)>",
        "map<string,list<map<integer,set<string(nfc)>>>>(nulls_empty)",
    ],
)
def test_a_type_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_hash_type(text)) == text


def test_blanks_in_a_type_do_not_matter() -> None:
    assert str(parse_hash_type(" map < string , decimal ( 2 ) > ")) == "map<string,decimal(2)>"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "`` is not a type"),
        ("strng", "`strng` is not a type known here"),
        ("list", "`list` does not say what is in it"),
        ("map<string>", "`map<string>` does not say what is in it"),
        ("list<string", "`list<string` is not a type"),
        ("decimal(31)", "the scale of a decimal is 0 to 30"),
        ("double(16)", "the scale of a double is 0 to 15"),
        ("timestamp", "a timestamp needs its unit"),
        ("list<timestamp>", "a timestamp needs its unit"),
        ("timestamp(ns)", "`ns` says nothing about a timestamp"),
        ("integer(2)", "integer has no scale"),
        ("date(ms)", "date has no unit"),
        ("binary(nfc)", "binary is no text"),
        ("integer(nulls_empty)", "no integer is empty"),
        ("decimal(2,)", "`decimal(2,)` is not a type"),
        ("decimal 2", "`decimal 2` is not a type"),
        ("list<" * 12 + "string" + ">" * 12, "is not a type"),
    ],
)
def test_what_is_no_type_is_refused_in_words(text: str, what: str) -> None:
    with pytest.raises(Refusal) as refused:
        parse_hash_type(text)
    assert what in refused.value.what


def test_a_type_can_be_said_in_keys_or_in_one_line(tmp_path: Path) -> None:
    keys = """
name: x
fields:
  - {name: a, type: string, string: nfc, trim: true, nulls: empty}
  - {name: b, type: decimal, scale: 2, sensitive: true}
  - {name: c, type: timestamp, unit: s}
"""
    line = "a:string(nfc,trim,nulls_empty),b:decimal(2),c:timestamp(s)"
    assert loaded(tmp_path, keys) == line
    types = {"a": "string(nfc,trim,nulls_empty)", "b": "decimal(2)", "c": "timestamp(s)"}
    assert contract_of("x", types).in_one_line == line


def test_every_fault_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    text = """name: x
algorithm: MD5
fields:
  - {name: a, type: decimall}
  - {name: b, type: timestamp}
  - {name: b, type: decimal(2), scale: 3}
"""
    assert faults(tmp_path, text) == [
        (2, "algorithm", "version 2 has SHA-256 alone"),
        (4, "fields[0].type", "`decimall` is not a type known here"),
        (5, "fields[1].type", "a timestamp needs its unit"),
        (5, "fields[1].name", "`b` is there twice"),
        (6, "fields[2].type", "`decimal(2)` has another scale already"),
        (6, "fields[2].name", "`b` is there twice"),
    ]


def test_unknown_keys_and_versions_are_refused(tmp_path: Path) -> None:
    text = "name: x\nhash_version: 3\nfields:\n  - {name: a, type: string, scal: 2}\n"
    assert [(line, field) for line, field, _ in faults(tmp_path, text)] == [
        (2, "hash_version"),
        (4, "fields[0].scal"),
    ]


def test_version_1_is_told_to_be_ambiguous(tmp_path: Path) -> None:
    file = tmp_path / "x.hash.yml"
    file.write_text(
        "name: x\nhash_version: 1\nalgorithm: MD5\nfields:\n  - {name: a, type: string}\n"
    )
    (note,) = load_contract(file).notes
    assert "ambiguous" in note
