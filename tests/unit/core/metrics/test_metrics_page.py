from __future__ import annotations

import importlib.util
from pathlib import Path

from tests.support.metric_windows import NOON, RECORD

from headgate.core.ledger.ranges import TopicRange
from headgate.core.metrics.delivery import BatchRecord, batch_fields
from headgate.core.metrics.names import SEVERITY_TOTALS
from headgate.core.metrics.windows import messages
from headgate.quality.compile.windows import TOTALS

ROOT = Path(__file__).parents[4]


def test_the_page_shows_the_names_as_they_are() -> None:
    spec = importlib.util.spec_from_file_location("page", ROOT / "tools/metrics_reference.py")
    assert spec
    assert spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.PAGE.read_text("utf-8")
    assert tool.page(text) == text, "run: make docs"


def test_the_page_names_every_field_of_a_record() -> None:
    text = (ROOT / "docs/metrics.md").read_text("utf-8")
    (message,) = messages(RECORD)
    rules = {"dq.shop.negative", "dq.shop.no_key", "dq_negative", "dq_no_key"}
    assert not [name for name in message if f'"{name}"' not in text and name not in rules]


def test_the_compiled_sql_has_the_same_totals() -> None:
    assert {s: m.name for s, m in SEVERITY_TOTALS.items()} == TOTALS


def test_the_page_names_every_field_of_a_batch() -> None:
    text = (ROOT / "docs/metrics.md").read_text("utf-8")
    range_ = TopicRange("t", "t1", {"0": 0}, {"0": 1})
    about = ("reconcile-business", "business_onprem", "topic1", "prod", "onprem", "dq.cassandra")
    record = BatchRecord(*about, NOON, range_, "r1", {"delete_count": 9, "dlq_records": 3})
    assert not [name for name in batch_fields(record) if f'"{name}"' not in text]
