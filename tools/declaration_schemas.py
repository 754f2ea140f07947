"""The JSON Schemas of manifests, rule sets, rule tests and hash contracts, for editors: `schemas/*.json`."""

from __future__ import annotations

from pathlib import Path

import orjson
from pydantic import TypeAdapter

from headgate.hashing.contract import HashContract
from headgate.pipeline.spec import Dataset
from headgate.quality.spec.rule_set import RuleSet
from headgate.quality.spec.rule_tests import RuleTests

SCHEMA_FILE = Path("schemas/dataset.schema.json")
RULES_SCHEMA_FILE = Path("schemas/rules.schema.json")
TESTS_SCHEMA_FILE = Path("schemas/rules.tests.schema.json")
HASH_SCHEMA_FILE = Path("schemas/hash_contract.schema.json")
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def dataset_schema() -> str:
    """The schema of a manifest as JSON text, the same bytes every time."""
    return _text(Dataset)


def rules_schema() -> str:
    """The schema of a rule set of version 2."""
    return _text(RuleSet)


def rule_tests_schema() -> str:
    """The schema of the tests of a rule set."""
    return _text(RuleTests)


def hash_contract_schema() -> str:
    """The schema of a hash contract."""
    return _text(HashContract)


def _text(model: type[object]) -> str:
    body = {"$schema": _DRAFT} | TypeAdapter(model).json_schema()
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode() + "\n"
