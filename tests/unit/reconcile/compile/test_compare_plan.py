"""What is compared with what, before any row is read; and the SQL, byte for byte."""

from __future__ import annotations

import os
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from headgate.core.sql.script import parse_script
from headgate.errors import UsageError
from headgate.reconcile.table_compare.keyed import Bits, keyed_sql, partitions_for, samples_sql
from headgate.reconcile.table_compare.multisets import repeated_keys_sql, repeated_sql, unkeyed_sql
from headgate.reconcile.table_compare.plan import (
    TWO_PARTS,
    Asked,
    Column,
    Table,
    common_form,
    hash_type,
    plan,
)
from headgate.reconcile.table_compare.sides import Sums, differing, fetch_sql, sums_sql

GOLDEN = Path(__file__).parents[3] / "golden" / "compare"


def table(name: str, **types: str) -> Table:
    columns = tuple(Column(column, type_) for column, type_ in types.items())
    return Table(name, f"lake.{name}", columns)


ONPREM = table("onprem.orders", id="bigint", amount="decimal(12,2)", at="timestamp", note="string")
CLOUD = table("cloud.orders", id="int", amount="decimal(14,4)", at="timestamp_ntz", note="string")
KEYED = Asked(key=("id",), tolerances={"amount": Decimal("0.01"), "at": timedelta(seconds=5)})


@pytest.mark.parametrize(
    ("left", "right", "type_"),
    [
        ("int", "bigint", "bigint"),
        ("int", "decimal(5,2)", "decimal(12,2)"),
        ("decimal(5,1)", "decimal(4,3)", "decimal(7,3)"),
        ("decimal(38,0)", "decimal(38,10)", TWO_PARTS),
        ("bigint", "decimal(38,37)", TWO_PARTS),
        ("float", "double", "double"),
        ("timestamp", "timestamp_ntz", "timestamp"),
        ("varchar(10)", "string", "string"),
        ("array<int>", "array<int>", "array<int>"),
        ("struct<a:int,b:string>", "struct<a:int,b:string>", "struct<a:int,b:string>"),
    ],
)
def test_types_that_hold_the_same_values_are_compared_in_one_that_loses_none(
    left: str, right: str, type_: str
) -> None:
    found = common_form(left, right)
    assert found is not None
    assert found.type == type_


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("string", "int"),
        ("double", "decimal(5,2)"),
        ("date", "timestamp"),
        ("boolean", "int"),
        ("variant", "variant"),
        ("array<map<int,int>>", "array<map<int,int>>"),
        ("struct<a:int>", "struct<b:int>"),
    ],
)
def test_types_whose_values_are_not_the_same_kind_are_not_compared(left: str, right: str) -> None:
    assert common_form(left, right) is None


def test_a_column_that_one_side_lacks_or_that_cannot_be_compared_is_a_difference() -> None:
    left = table("a.a", id="bigint", x="string", gone="int")
    right = table("a.b", id="bigint", x="bigint", came="int")
    found = plan(left, right, Asked(key=("id",)))
    assert (found.only_onprem, found.only_cloud) == (("gone",), ("came",))
    assert [unlike.name for unlike in found.unlike] == ["x"]
    assert not found.same_columns
    ignored = frozenset({"x", "gone", "came"})
    assert plan(left, right, Asked(key=("id",), ignored=ignored)).same_columns


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked(key=("idd",)), "key `idd` is not there. Did you mean `id`?"),
        (Asked(key=("id",), ignored=frozenset({"nte"})), "Did you mean `note`?"),
        (Asked(key=("id",), ignored=frozenset({"id"})), "key `id` cannot be ignored"),
        (Asked(key=("id",), tolerances={"id": Decimal(1)}), "cannot have a tolerance"),
        (Asked(key=("id",), tolerances={"at": Decimal(1)}), "a length of time as 5 SECONDS"),
        (Asked(key=("id",), tolerances={"amount": timedelta(1)}), "must be a number"),
        (Asked(key=("id",), tolerances={"note": Decimal(1)}), "only numbers and times"),
        (Asked(tolerances={"amount": Decimal(1)}), "a tolerance needs a key"),
        (Asked(key=("id",), renamed={"note": "notes"}), "renamed column `notes` is not there"),
        (Asked(key=("id",), hidden=frozenset({"secret"})), "masked column `secret`"),
    ],
)
def test_what_cannot_be_done_as_asked_is_refused_in_words(asked: Asked, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        plan(ONPREM, CLOUD, asked)
    assert words in refused.value.why


def test_digits_that_no_decimal_holds_have_no_tolerance() -> None:
    left, right = (
        table("a.a", id="int", n="decimal(38,0)"),
        table("a.b", id="int", n="decimal(38,9)"),
    )
    with pytest.raises(UsageError) as refused:
        plan(left, right, Asked(key=("id",), tolerances={"n": Decimal(1)}))
    assert "too many digits for a tolerance" in refused.value.why


def test_a_hostile_column_name_stays_a_name() -> None:
    name = "a`; DROP TABLE x -- ' ${y"
    with pytest.raises(UsageError):
        plan(table("a.a", **{name: "int"}), table("a.b", **{name: "int"}), Asked())
    odd = "a`; DROP TABLE x -- '"
    left, right = (table(n, id="int", **{odd: "int"}) for n in ("a.a", "a.b"))
    script = parse_script("x", keyed_sql(plan(left, right, Asked(key=("id",)))))
    assert "DROP" not in {step.sql.split()[0] for step in script.steps}


@pytest.mark.parametrize("count", [0, 1, 62, 63, 130])
def test_any_number_of_columns_has_its_bits(count: int) -> None:
    bits = Bits(tuple(f"c{at}" for at in range(count)))
    for at in range(count):
        number, bit = bits.place(at)
        numbers = [bit if each == number else 0 for each in bits.numbers]
        assert bit < 2**63
        assert bits.set_in(numbers) == (f"c{at}",)
    assert bits.set_in([0] * len(bits.numbers)) == ()


def test_partitions_grow_with_the_values_that_a_task_would_hold() -> None:
    found = plan(ONPREM, CLOUD, Asked(key=("id",)))
    assert partitions_for(found, 1_000) == 1
    assert partitions_for(found, 100_000_000) == 50


def test_segments_with_other_sums_or_none_differ() -> None:
    one, two = Sums(1, 1, (Decimal(1),)), Sums(1, 1, (Decimal(2),))
    assert differing({1: one, 2: one, 3: one}, {1: one, 2: two, 4: one}) == (2, 3, 4)
    assert differing({}, {}) == ()


def test_what_cannot_be_hashed_cannot_be_summed_up() -> None:
    assert (hash_type("decimal(12,2)"), hash_type("float")) == ("decimal", "double")
    assert hash_type("array<int>") == "list<integer>"
    assert hash_type("decimal(38,35)") is None
    nested = {"id": "int", "s": "struct<a:int>"}
    found = plan(table("a.a", **nested), table("a.b", **nested), Asked(key=("id",)))
    with pytest.raises(UsageError) as refused:
        sums_sql(found, "onprem")
    assert "s (struct<a:int>)" in refused.value.what


def test_the_scripts_are_those_kept_byte_for_byte() -> None:
    keyed, unkeyed = plan(ONPREM, CLOUD, KEYED), plan(ONPREM, CLOUD, Asked())
    scripts = {
        "keyed.sql": keyed_sql(keyed, 4),
        "keyed_apart.sql": keyed_sql(keyed, 4, repeated=True),
        "repeated_keys.sql": repeated_keys_sql(keyed),
        "repeated.sql": repeated_sql(keyed),
        "samples.sql": samples_sql(keyed, "MISMATCH", 10),
        "unkeyed.sql": unkeyed_sql(unkeyed),
        "sums.sql": sums_sql(keyed, "cloud"),
        "fetch.sql": fetch_sql(keyed, "cloud", (3, 1)),
    }
    if os.environ.get("HEADGATE_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        for name, text in scripts.items():
            (GOLDEN / name).write_text(text + "\n", encoding="utf-8")
    assert {n: (GOLDEN / n).read_text("utf-8") for n in scripts} == {
        n: text + "\n" for n, text in scripts.items()
    }
