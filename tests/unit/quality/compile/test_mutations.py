"""A rule set spoilt at random is refused in words, or is still one; nothing else happens."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.support.rule_files import ONE, PAIR

from headgate.core.sql.script import parse_script
from headgate.errors import DeclarationError, Fault
from headgate.quality.compile.file import compile_table
from headgate.quality.compile.resolve import JudgedFile, load_judged
from headgate.quality.compile.tables import FILE

pytestmark = pytest.mark.heavy

RULES = (
    "{name: a, type: range, field: items, min: 0, max: 5, description: too many}",
    "{name: b, type: lookup_in, field: email, values: [x, y]}",
    "{name: c, type: cross_field, left: at, op: <=, right: until}",
    '{name: d, when: "{pk} > email", emit: {dq_status: BAD, metric: bad, severity: WARN}}',
    "{name: e, type: unique, fields: [email, at], horizon: 1 HOUR}",
    "{name: f, type: regex, field: email, pattern: '^a$'}",
)
OLD = "topic: t\npk: id\nrules:\n- {id: r, type: range, field: v, min: 1, severity: fail}\n"
JOINED = (
    "version: 1\nsources: {onprem: {topic: a}, cloud: {topic: b}}\njoin: {on: pk}\nrules:\n"
    "- {name: x, when: t1.hash <> t2.hash, emit: {dq_status: MISMATCH, metric: dq_mismatch}}\n"
)
JUNK: tuple[object, ...] = (
    *(None, True, 5, -1, 0, 1.5, 10**40, 1e300, "", "x", "a b", "{t1}.x", "NULL", "'", "{", "}"),
    *("{pk}", "--", "${X}", "10 SECONDS", "`a`", "*", "t2", "session", "STRING", "[0]", "a.b"),
    *([], {}, [1], [None], [[1]], {"a": 1}, {"type": "INT"}),
)
HOSTILE = (
    "\n-- step: view\nDROP TABLE lake.silver.orders;\n-- ",
    "'; DROP TABLE lake.silver.orders; --",
    "\r; DROP TABLE x; \u2028-- step: accept\u2028",
    "\ud800",
)
SEEDS = range(4)
SPOILT = 40


def documents() -> list[Any]:
    yaml: Any = YAML(typ="safe", pure=True)
    one = ONE + "".join(f"      - {rule}\n" for rule in RULES)
    pair = PAIR + "  - {name: x, when: '{hash_onprem} <> {hash_cloud}', description: other}\n"
    loaded = [yaml.load(text) for text in (one, one, pair, OLD, JOINED)]
    columns = {"email": "STRING", "at": "TIMESTAMP(3)"}
    deep = {"columns": columns, "pk_path": "p[a='b'].c", "dc": "here"}
    loaded[1]["tables"][0]["sources"]["onprem"] |= deep
    loaded[1]["metadata"] = {"env": "prod", "pipeline": "all"}
    loaded[1]["tables"][0]["rules"] = loaded[1]["tables"][0]["rules"][1:2]
    return loaded


def places(node: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    return [here, *(place for key, part in inner for place in places(part, (*here, key)))]


def spoilt(document: Any, chance: random.Random) -> Any:
    document = copy.deepcopy(document)
    for _ in range(chance.choice((1, 1, 2, 4))):
        *steps, last = chance.choice([place for place in places(document) if place] or [(0,)])
        node = document
        for step in steps:
            node = node[step]
        junk = copy.deepcopy(chance.choice(JUNK))
        match chance.randrange(4), node:
            case 0, dict():
                del node[last]
            case 1, dict():
                node[chance.choice(("zz", "type", "when", "values", "url", "emit", "a.b"))] = junk
            case 2, list():
                node.append(junk)
            case _:
                node[last] = junk
        if not document:
            break
    return document


def found_in(path: Path) -> JudgedFile | tuple[Fault, ...]:
    try:
        return load_judged(path, {})
    except DeclarationError as error:
        return error.faults


def steps_of(found: JudgedFile) -> list[list[str]]:
    """Which statements the file would run, table by table."""
    texts = [compile_table(table, "rules.yml").text for table in found.tables]
    return [[step.name for step in parse_script(FILE, text).steps] for text in texts]


def is_unique(found: JudgedFile) -> bool:
    return any(rule.unique for table in found.tables for rule in table.rules)


def unspoilt(path: Path, document: Any, *, unique: bool) -> list[list[str]]:
    """The steps of the sound document, with a table of keys or without."""
    sound = copy.deepcopy(document)
    for table in sound.get("tables", ()):
        rules = table.get("rules", [])
        table["rules"] = [rule for rule in rules if unique or rule.get("type") != "unique"]
    path.write_text(json.dumps(sound))
    return steps_of(load_judged(path, {}))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_spoilt_rule_set_is_refused_in_words_or_becomes_the_same_steps(
    tmp_path: Path, seed: int
) -> None:
    print(f"seed {seed}")
    chance, refused = random.Random(seed), 0
    path = tmp_path / "rules.yml"
    for _ in range(SPOILT):
        document = chance.choice(documents())
        path.write_text(json.dumps(spoilt(document, chance), indent=1))
        found = found_in(path)
        if isinstance(found, JudgedFile):
            text = path.read_text()
            assert steps_of(found) == unspoilt(path, document, unique=is_unique(found)), text
            continue
        refused += 1
        assert all(fault.what and fault.fix for fault in found), found
    assert SPOILT / 2 < refused < SPOILT


@pytest.mark.parametrize("number", range(5))
def test_a_hostile_text_anywhere_is_refused_or_stays_text(tmp_path: Path, number: int) -> None:
    document, path, accepted = documents()[number], tmp_path / "rules.yml", 0
    for place in places(document):
        for tail in HOSTILE:
            spoilt_there = with_tail(document, place, tail)
            if spoilt_there is None:
                continue
            path.write_text(json.dumps(spoilt_there))
            found = found_in(path)
            if isinstance(found, JudgedFile):
                accepted += 1
                steps = steps_of(found)
                assert steps == unspoilt(path, document, unique=is_unique(found)), (place, tail)
    assert accepted > 0


def with_tail(document: Any, place: tuple[Any, ...], tail: str) -> Any:
    """The document with this text behind the one at a place; None where no text stands."""
    changed = copy.deepcopy(document)
    node = changed
    for step in place[:-1]:
        node = node[step]
    if not place or not isinstance(node[place[-1]], str):
        return None
    node[place[-1]] += tail
    return changed


def test_half_of_a_character_is_refused_in_a_key_too(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    path.write_text('{"version": 2, "tab\\ud800les": [], "tables": "x\\ud800"}')
    found = found_in(path)
    assert isinstance(found, tuple)
    halves = [fault for fault in found if "half of a character" in fault.what]
    assert [(fault.field, fault.line) for fault in halves] == [("tab?les", 1), ("tables", 1)]


@pytest.mark.parametrize("name", ["a\nb", "Email", "kafka_offset", "_x.y"])
def test_a_key_that_comes_from_a_path_has_the_name_of_a_column(tmp_path: Path, name: str) -> None:
    path, document = tmp_path / "rules.yml", documents()[1]
    document["tables"][0]["pk"] = name
    path.write_text(json.dumps(document))
    found = found_in(path)
    assert isinstance(found, tuple)
    assert {fault.field for fault in found} == {"tables[0].pk"}
