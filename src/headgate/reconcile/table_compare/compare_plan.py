"""From two tables and what is asked to the columns that are compared; all faults are said at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from headgate.conditions.expr_literals import spark_identifier
from headgate.declarations.refusal import Refusal, suggestion
from headgate.errors import UsageError
from headgate.reconcile.table_compare.model import Asked, Compared, Plan, Table, Unlike
from headgate.reconcile.table_compare.types import TWO_PARTS, Form, common_form

# Names that the scripts use beside those of the columns.
OURS = frozenset({"dq_present", "dq_copies", "dq_together", "dq_side"})
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


def plan(onprem: Table, cloud: Table, asked: Asked) -> Plan:
    """What will be compared; raises UsageError for what cannot be done as asked."""
    if faults := [*_faults(onprem, cloud, asked)]:
        raise UsageError(
            f"{onprem.name} and {cloud.name} cannot be compared so", why="\n".join(faults)
        )
    shared = [name for name in _wanted(onprem, asked) if _right(asked, name) in cloud.types]
    forms = {name: _form(onprem, cloud, asked, name) for name in shared}
    found = {name: form for name, form in forms.items() if form is not None}
    names = {name: _compared(asked, name, form) for name, form in found.items()}
    return Plan(
        onprem=onprem,
        cloud=cloud,
        key=tuple(names[name] for name in asked.key),
        columns=tuple(each for name, each in names.items() if name not in asked.key),
        only_onprem=tuple(n for n in _wanted(onprem, asked) if n not in forms),
        only_cloud=_only_cloud(cloud, asked, shared),
        unlike=tuple(_unlike(onprem, cloud, asked, n) for n, form in forms.items() if not form),
        hidden=asked.hidden,
        notes=tuple(_notes(found)),
    )


def _wanted(table: Table, asked: Asked) -> list[str]:
    return [column.name for column in table.columns if column.name not in asked.ignored]


def _right(asked: Asked, name: str) -> str:
    return asked.renamed.get(name, name)


def _form(onprem: Table, cloud: Table, asked: Asked, name: str) -> Form | None:
    return common_form(onprem.types[name], cloud.types[_right(asked, name)])


def _compared(asked: Asked, name: str, form: Form) -> Compared:
    left, right = spark_identifier(name), spark_identifier(_right(asked, name))
    tolerance = asked.tolerances.get(name)
    forms = form.onprem.format(left), form.cloud.format(right)
    return Compared(name, form.type, *forms, tolerance)


def _only_cloud(cloud: Table, asked: Asked, shared: Iterable[str]) -> tuple[str, ...]:
    taken = {_right(asked, name) for name in shared}
    return tuple(name for name in _wanted(cloud, asked) if name not in taken)


def _unlike(onprem: Table, cloud: Table, asked: Asked, name: str) -> Unlike:
    return Unlike(name, onprem.types[name], cloud.types[_right(asked, name)])


def _notes(forms: Mapping[str, Form]) -> Iterator[str]:
    for words in dict.fromkeys(form.note for form in forms.values() if form.note):
        names = [name for name, form in forms.items() if form.note == words]
        yield f"{', '.join(names)}: {words}"


def _faults(onprem: Table, cloud: Table, asked: Asked) -> Iterator[str]:
    yield from _nameless(asked, onprem, cloud)
    yield from _unknown(asked.key, onprem.types, "key")
    yield from _unknown([_right(asked, n) for n in asked.key], cloud.types, "key")
    yield from _unknown(asked.ignored, {**onprem.types, **cloud.types}, "ignored column")
    yield from _unknown(asked.renamed, onprem.types, "renamed column")
    yield from _unknown(asked.renamed.values(), cloud.types, "renamed column")
    yield from _unknown(asked.tolerances, onprem.types, "tolerance")
    yield from _unknown(asked.hidden, {**onprem.types, **cloud.types}, "masked column")
    yield from _keys(onprem, cloud, asked)
    yield from _tolerances(onprem, asked)
    yield from _apart(onprem, cloud, asked)


def _nameless(asked: Asked, *tables: Table) -> Iterator[str]:
    for table in tables:
        for name in _wanted(table, asked):
            if name in OURS:
                yield f"{table.name}: the scripts use the name `{name}` themselves; ignore it."
            try:
                spark_identifier(name)
            except Refusal as refused:
                yield f"{table.name}: {refused.what}. {refused.fix}"


def _unknown(names: Iterable[str], known: Mapping[str, str], what: str) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"{what} `{name}` is not there. {suggestion(name, known, 'columns')}"


def _keys(onprem: Table, cloud: Table, asked: Asked) -> Iterator[str]:
    for name in asked.key:
        right = _right(asked, name)
        if name not in onprem.types or right not in cloud.types:
            continue
        if name in asked.ignored:
            yield f"key `{name}` cannot be ignored."
        elif name in asked.tolerances:
            yield f"key `{name}` cannot have a tolerance: keys are equal or not."
        elif _form(onprem, cloud, asked, name) is None:
            kinds = f"{onprem.types[name]} and {cloud.types[right]}"
            yield f"key `{name}` is {kinds}, which have no common form."


def _tolerances(onprem: Table, asked: Asked) -> Iterator[str]:
    if asked.tolerances and not asked.key:
        yield "a tolerance needs a key: without one rows are equal or not."
    for name, tolerance in asked.tolerances.items():
        type_ = onprem.types.get(name, "")
        timely = type_.startswith(("timestamp", "date"))
        if type_ and isinstance(tolerance, timedelta) != timely:
            given = "a length of time as 5 SECONDS" if timely else "a number as 0.01"
            yield f"the tolerance of `{name}`, a column of type {type_}, must be {given}."
        elif type_ and not timely and not type_.startswith(NUMBERS):
            yield f"`{name}` is {type_}: only numbers and times have a tolerance."


def _apart(onprem: Table, cloud: Table, asked: Asked) -> Iterator[str]:
    for name in asked.tolerances:
        if name in onprem.types and _right(asked, name) in cloud.types:
            form = _form(onprem, cloud, asked, name)
            if form is not None and form.type == TWO_PARTS:
                yield f"`{name}` has too many digits for a tolerance: no DECIMAL holds both sides."
