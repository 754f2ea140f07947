"""How a value goes wrong on its way to the cloud: one change for each kind of difference."""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from headgate.demo.reconcile.model import BusinessRow

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
