"""What can be wrong with a planted key, how often it is planted, and which verdict must come of it."""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal

from headgate.demo.reconcile.keys import BusinessRow, Expected, Key, Message, Plan

Change = Callable[[BusinessRow], BusinessRow]


def emptied(row: BusinessRow) -> BusinessRow:
    """Null became an empty text; see `nulled` for how such a row looks on-prem."""
    return replace(row, col1="")


def nulled(row: BusinessRow) -> BusinessRow:
    return replace(row, col1=None)


def rescaled(row: BusinessRow) -> BusinessRow:
    """12.34 became 1234: cents were taken for whole units."""
    return replace(row, col2=_decimal(row).scaleb(2))


def shifted(row: BusinessRow) -> BusinessRow:
    """A local time was taken for UTC."""
    assert row.col3 is not None
    return replace(row, col3=row.col3 + timedelta(hours=2))


def single(row: BusinessRow) -> BusinessRow:
    """A double went through a 4-byte float."""
    (rounded,) = struct.unpack("f", struct.pack("f", row.col4))
    return replace(row, col4=rounded)


def decomposed(row: BusinessRow) -> BusinessRow:
    return replace(row, col1=unicodedata.normalize("NFD", _text(row)))


def padded(row: BusinessRow) -> BusinessRow:
    return replace(row, col1=f"{_text(row)}  ")


def cut(row: BusinessRow) -> BusinessRow:
    return replace(row, col1=_text(row)[:12])


def capitals(row: BusinessRow) -> BusinessRow:
    return replace(row, col1=_text(row).upper())


def changed(row: BusinessRow) -> BusinessRow:
    """Another amount: nothing but the source can say which is right."""
    return replace(row, col2=_decimal(row) + Decimal("100.01"))


def otherwise_written(row: BusinessRow) -> BusinessRow:
    """The same value at another scale: no difference."""
    return replace(row, col2=_decimal(row).quantize(Decimal("0.0001")))


def _text(row: BusinessRow) -> str:
    assert row.col1 is not None
    return row.col1


def _decimal(row: BusinessRow) -> Decimal:
    assert row.col2 is not None
    return row.col2


_SECOND, _MINUTE = timedelta(seconds=1), timedelta(minutes=1)
SOUND = "sound"


@dataclass(frozen=True)
class Role:
    """A kind of key: so many of a thousand, planned like this, expected to end like this."""

    name: str
    per_mille: int
    expected: Expected
    plan: Callable[[Key], Plan]


def sound(key: Key) -> Plan:
    """Equal on both sides; some messages have only the documents' fields."""
    bare = key.number % 3 == 0
    message = key.says(version=None if bare else 2, action=None if bare else "UPSERT")
    return Plan((message,), (key.holds(),), key.row)


def differs(change: Change) -> Callable[[Key], Plan]:
    """The cloud holds the whole row with one value changed."""

    def plan(key: Key) -> Plan:
        return Plan((key.says(key.whole),), (key.holds(change(key.whole)),), key.whole)

    return plan


def null_empty(key: Key) -> Plan:
    """Null on one side, an empty text on the other, in both ways."""
    sides = nulled(key.whole), emptied(key.whole)
    onprem, cloud = sides if key.number % 2 else sides[::-1]
    return Plan((key.says(onprem),), (key.holds(cloud),), onprem)


def missing_cloud(key: Key) -> Plan:
    return Plan((key.says(),), (), key.row)


def missing_onprem(key: Key) -> Plan:
    return Plan((), (key.holds(),))


def deleted_both(key: Key) -> Plan:
    return Plan((key.says(action="CREATE"), _deleted(key)))


def tombstone(key: Key) -> Plan:
    """A null value on-prem: its version is the time of the record."""
    return Plan((key.says(action="UPDATE"), key.raw(None)))


def zombie_cloud(key: Key) -> Plan:
    return Plan((key.says(), _deleted(key)), (key.holds(after=_SECOND / 2),))


def zombie_onprem(key: Key) -> Plan:
    return Plan((key.says(), key.gone_in_the_cloud()), (), key.row)


def replayed(key: Key) -> Plan:
    """The same message again, at once or with the last wave."""
    message = key.says()
    again = message if key.number % 2 else replace(message, phase="late")
    return Plan((message, again), (key.holds(),), key.row)


def stale(key: Key) -> Plan:
    """An older version comes after the newest one."""
    older = key.says(changed(key.whole), after=-_MINUTE)
    return Plan((key.says(key.whole), older), (key.holds(key.whole),), key.whole)


def conflict(key: Key) -> Plan:
    """Two messages of one version with different hashes, of which the last is right."""
    other = key.says(changed(key.whole))
    return Plan((other, key.says(key.whole)), (key.holds(key.whole),), key.whole)


def conflict_wrong(key: Key) -> Plan:
    """The last of them is wrong: the rows are equal, their hashes are not."""
    other = key.says(changed(key.whole))
    return Plan((key.says(key.whole), other), (key.holds(key.whole),), key.whole)


def soon(key: Key) -> Plan:
    """The cloud holds an older version at first, and follows within the window."""
    before = key.holds(changed(key.whole), after=-_MINUTE)
    return Plan((key.says(key.whole),), (before, key.holds(key.whole, "soon")), key.whole)


def late_update(key: Key) -> Plan:
    before = key.holds(changed(key.whole), after=-_MINUTE)
    return Plan((key.says(key.whole),), (before, key.holds(key.whole, "late")), key.whole)


def late_row(key: Key) -> Plan:
    """There is no row at first."""
    return Plan((key.says(key.whole),), (key.holds(key.whole, "late"),), key.whole)


def late_difference(key: Key) -> Plan:
    write = key.holds(changed(key.whole), "late")
    return Plan((key.says(key.whole),), (write,), key.whole)


def version_skew(key: Key) -> Plan:
    return Plan((key.says(version=1),), (key.holds(),), key.row)


def invalid_hash(key: Key) -> Plan:
    digits = key.hash_of(key.row.values(), 2)
    wrong = (digits[:-1], digits.upper(), f"{digits[:-1]}g", "", f" {digits}")
    bad = wrong[key.number % len(wrong)]
    return Plan((key.says(hash_onprem=bad),), (key.holds(),), key.row)


def no_key(key: Key) -> Plan:
    """Nothing says which key: no list, an empty one, one without a PK, or a PK without a value."""
    other, nobody = {"type": "CK", "value": key.row.pk}, {"type": "PK", "value": None}
    lists: tuple[list[object] | None, ...] = (None, [], [other], [nobody])
    said = key.says(partitionColumns=lists[key.number % len(lists)])
    return Plan((Message("first", None, said.value),))


def unknown_action(key: Key) -> Plan:
    words = ("MERGE", "delete", "TRUNCATE")
    return Plan((key.says(action=words[key.number % len(words)]),))


def not_json(key: Key) -> Plan:
    value = key.says().value or b""
    return Plan((key.raw(value[: len(value) // 2]),))


def not_utf8(key: Key) -> Plan:
    return Plan((key.raw(b"\xff\xfe" + (key.says().value or b"")),))


def _deleted(key: Key) -> Message:
    return key.says(action="DELETE", after=_SECOND)


def _mismatch(kind: str, column: str, per_mille: int, change: Change) -> Role:
    return Role(kind, per_mille, Expected("MISMATCH", kind, column), differs(change))


# The rest are sound.
ROLES: tuple[Role, ...] = (
    Role("null_empty", 10, Expected("MISMATCH", "null_empty", "col1"), null_empty),
    _mismatch("scale", "col2", 8, rescaled),
    _mismatch("zone_shift", "col3", 8, shifted),
    _mismatch("precision", "col4", 8, single),
    _mismatch("unicode_form", "col1", 8, decomposed),
    _mismatch("trim", "col1", 8, padded),
    _mismatch("truncation", "col1", 8, cut),
    _mismatch("case", "col1", 8, capitals),
    _mismatch("real", "col2", 12, changed),
    Role("same_value", 10, Expected("MATCH"), differs(otherwise_written)),
    Role("missing_cloud", 15, Expected("MISSING_CLOUD"), missing_cloud),
    Role("missing_onprem", 10, Expected("MISSING_ONPREM"), missing_onprem),
    Role("deleted_both", 8, Expected("DELETE_EVENT", deletes=1), deleted_both),
    Role("tombstone", 5, Expected("DELETE_EVENT", deletes=1), tombstone),
    Role("zombie_cloud", 8, Expected("ZOMBIE", deletes=1), zombie_cloud),
    Role("zombie_onprem", 5, Expected("ZOMBIE", stale=None), zombie_onprem),
    Role("replayed", 10, Expected("MATCH", again=1), replayed),
    Role("stale", 8, Expected("MATCH", stale=True), stale),
    Role("conflict", 4, Expected("MATCH", conflict=True), conflict),
    Role("conflict_wrong", 4, Expected("MISMATCH", conflict=True), conflict_wrong),
    Role("soon", 15, Expected("MATCH", path=("PENDING", "MATCH")), soon),
    Role("late_update", 8, Expected("LATE_MATCH", path=("PENDING", "LATE_MATCH")), late_update),
    Role("late_row", 10, Expected("LATE_MATCH", path=("MISSING_CLOUD", "LATE_MATCH")), late_row),
    Role(
        "late_difference",
        5,
        Expected("LATE_MISMATCH", "real", "col2", path=("MISSING_CLOUD", "LATE_MISMATCH")),
        late_difference,
    ),
    Role("version_skew", 5, Expected("VERSION_SKEW"), version_skew),
    Role("invalid_hash", 6, Expected("INVALID_HASH"), invalid_hash),
    Role("no_key", 3, Expected(None, letter="dq_missing_pk"), no_key),
    Role("unknown_action", 3, Expected(None, letter="dq_unknown_action"), unknown_action),
    Role("not_json", 2, Expected(None, letter="not_json"), not_json),
    Role("not_utf8", 1, Expected(None, letter="not_utf8"), not_utf8),
)
