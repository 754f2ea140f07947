"""Memory is summed over a process and everything below it."""

from __future__ import annotations

from headgate.local.process import Process, family, resident

TREE = {
    1: Process(1, parent=0, resident=1),
    10: Process(10, parent=1, resident=10),
    100: Process(100, parent=10, resident=100),
    20: Process(20, parent=2, resident=1_000),
}


def test_strangers_are_no_family() -> None:
    assert family(10, TREE.values()) == {10, 100}
    assert resident(1, TREE) == 111


def test_a_process_that_is_gone_counts_nothing() -> None:
    assert resident(5, TREE) == 0
