"""What must hold of a manifest before it is compiled, beyond what the loader sees."""

from __future__ import annotations

from collections.abc import Callable

from headgate.conditions.faults import ExprError
from headgate.conditions.parser import parse_condition, parse_value
from headgate.core.sql import bronze
from headgate.declarations.declared import Declared
from headgate.errors import DeclarationError, Fault
from headgate.pipeline.compile import compile_silver as silver
from headgate.pipeline.spec import Dataset


def check_dataset(declared: Declared[Dataset]) -> None:
    """Refuse what the closed language does not admit and names that are taken, all at once."""
    faults = [*_expression_faults(declared), *_name_faults(declared)]
    if faults:
        raise DeclarationError(sorted(faults, key=lambda fault: fault.line or 0))


def _expression_faults(declared: Declared[Dataset]) -> list[Fault]:
    dataset, faults = declared.value, list[Fault]()

    def admit(pointer: str, parse: Callable[[], object]) -> None:
        try:
            parse()
        except ExprError as error:
            faults.extend(declared.fault(pointer, f.what, f.why, f.fix) for f in error.faults)

    types = dataset.bronze_types
    for i, text in enumerate(dataset.quality_filters):
        admit(f"quality_filters[{i}]", lambda text=text: parse_condition(text, types))
    admit("partition_date_expr", lambda: parse_value(dataset.partition_date_expr, types))
    return faults


def _name_faults(declared: Declared[Dataset]) -> list[Fault]:
    why = "the compiled SQL uses that name itself"
    dataset = declared.value
    faults = [
        declared.fault(f"columns[{i}].name", f"`{c.name}` is taken", why, "Leave the column out.")
        for i, c in enumerate(dataset.columns)
        if c.name.lower() in bronze.OWN_NAMES
    ]
    named = {f"columns[{i}].silver_name": c.silver_name for i, c in enumerate(dataset.columns)}
    named["surrogate_key_name"] = dataset.surrogate_key_name
    named["partition_date_col"] = dataset.partition_date_col
    faults += [
        declared.fault(pointer, f"`{name}` is taken", why, "Choose another name in silver.")
        for pointer, name in named.items()
        if name.lower() in silver.OWN_NAMES
    ]
    return faults
