"""A rule set spoilt at random is refused in words, or is still one; nothing else happens."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.unit.compile.rules.rule_sets import ONE, PAIR

from headgate.compile.rules.judge import load_judged
from headgate.errors import DeclarationError, Fault

RULES = (
    "{name: a, type: range, field: items, min: 0, max: 5}",
    "{name: b, type: lookup_in, field: email, values: [x, y]}",
    "{name: c, type: cross_field, left: at, op: <=, right: until}",
    '{name: d, when: "{pk} IS NULL", emit: {dq_status: BAD, metric: bad, severity: WARN}}',
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
SEEDS = range(4)
SPOILT = 40


def documents() -> list[Any]:
    yaml: Any = YAML(typ="safe", pure=True)
    one = ONE + "".join(f"      - {rule}\n" for rule in RULES)
    pair = PAIR + "  - {name: x, when: '{hash_onprem} <> {hash_cloud}'}\n"
    return [yaml.load(text) for text in (one, one, pair, OLD, JOINED)]


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


def faults_of(path: Path) -> tuple[Fault, ...]:
    try:
        load_judged(path, {})
    except DeclarationError as error:
        return error.faults
    return ()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_spoilt_rule_set_is_refused_in_words(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    chance, refused = random.Random(seed), 0
    path = tmp_path / "rules.yml"
    for _ in range(SPOILT):
        path.write_text(json.dumps(spoilt(chance.choice(documents()), chance), indent=1))
        faults = faults_of(path)
        refused += bool(faults)
        assert all(fault.what and fault.fix for fault in faults), faults
    assert refused > SPOILT / 2
