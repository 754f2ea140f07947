from __future__ import annotations

import pytest

from headgate.filters.router.sets import forbidden
from headgate.filters.store.model import Wanted


def wanted(source: str, topic: str) -> Wanted:
    return Wanted(f"{source}-to-{topic}", source, "r", "{}", topic, "d")


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (wanted("raw", "raw"), "for ever"),
        (wanted("c", "raw"), "for ever"),
        (wanted("raw", "dead"), "dead letters"),
        (wanted("raw", "orders.dlq"), "dead letters"),
        (wanted("raw", "__consumer_offsets"), "its own state"),
    ],
)
def test_a_filter_must_not_write_where_its_events_come_from_or_to_topics_of_others(
    one: Wanted, why: str
) -> None:
    every = [wanted("raw", "a"), wanted("a", "b"), wanted("b", "c"), one]
    assert why in forbidden(one, "dead", every)


def test_filters_may_follow_upon_each_other() -> None:
    chain = [wanted("raw", "a"), wanted("a", "b"), wanted("raw", "b")]
    assert [forbidden(one, "dead", chain) for one in chain] == ["", "", ""]
