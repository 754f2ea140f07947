"""A dataset builds what its silver table feeds, and nothing that waits for another's."""

from __future__ import annotations

from headgate.pipeline.dbt.models import Node, Scope, outside

TABLES = {"rides": "silver.rides", "orders": "silver.orders"}
SOURCES = {"s.rides": "silver.rides", "s.orders": "silver.orders", "s.crm": "crm.people"}
NODES = {
    "stg_rides": Node("stg_rides", "model", ("s.rides",)),
    "stg_orders": Node("stg_orders", "model", ("s.orders",)),
    "fct_orders": Node("fct_orders", "model", ("stg_orders", "stg_shops")),
    "both": Node("both", "model", ("fct_orders", "stg_rides")),
    "shops": Node("shops", "seed"),
    "stg_shops": Node("stg_shops", "model", ("shops",)),
    "dim_shops": Node("dim_shops", "model", ("stg_shops",)),
    "zones": Node("zones", "seed", tags=("rides",)),
    "dim_zones": Node("dim_zones", "model", ("zones",)),
    "dim_drivers": Node("dim_drivers", "model"),
    "a_test": Node("a_test", "test", ("dim_drivers", "stg_rides")),
    "calendar": Node("calendar", "model"),
    "people": Node("people", "model", ("s.crm",)),
}


def left_out(active: str, *present: str) -> set[str]:
    return set(outside(NODES, SOURCES, Scope(active, TABLES, frozenset(present))).names)


def test_another_datasets_models_are_left_out_and_so_is_what_waits_for_them() -> None:
    assert left_out("orders") == {"stg_rides", "both", "zones", "dim_zones", "dim_drivers"}
    assert left_out("rides") == {"stg_orders", "fct_orders", "both"} | {
        *("shops", "stg_shops", "dim_shops")
    }


def test_what_waits_says_for_which_table() -> None:
    found = outside(NODES, SOURCES, Scope("orders", TABLES, frozenset()))
    assert found.waiting == {"both": ("silver.rides",)}


def test_where_all_tables_are_there_a_model_of_both_is_built_with_all_it_stands_on() -> None:
    there = TABLES.values()
    assert left_out("orders", *there) == {"zones", "dim_zones", "dim_drivers"}
    assert left_out("rides", *there) == {"dim_shops"}


def test_what_belongs_to_no_dataset_is_built_with_each() -> None:
    for active in TABLES:
        assert not {"calendar", "people"} & left_out(active)


def test_alone_in_its_project_a_dataset_leaves_out_nothing() -> None:
    nodes = {i: n for i, n in NODES.items() if i not in ("stg_orders", "fct_orders", "both")}
    scope = Scope("rides", {"rides": "silver.rides"}, frozenset({"silver.rides"}))
    assert outside(nodes, SOURCES, scope).names == frozenset()


def test_a_test_joins_what_it_compares() -> None:
    assert "dim_drivers" not in left_out("rides")
    assert "dim_drivers" in left_out("orders")
