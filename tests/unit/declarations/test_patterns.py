from __future__ import annotations

import pytest

from headgate.declarations.errors import Refusal
from headgate.declarations.types import java_pattern


def test_doubled_quotes_are_halved() -> None:
    assert java_pattern("yyyy-MM-dd''T''HH:mm:ss") == "yyyy-MM-dd'T'HH:mm:ss"
    assert java_pattern("yyyy-MM-dd'T'HH:mm:ss[.SSS]") == "yyyy-MM-dd'T'HH:mm:ss[.SSS]"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("yyyy-MM-dd'T", "quote"),
        ("yyyy-MM-ddTHH", "`T`"),
        ("YYYY-MM-dd", "`Y`"),
        ("HH:mm", "no year"),
        ("yyyy-MM", "no day"),
        ("yyyy-MM-dd [HH", "brackets"),
        ("yyyy-MM-dd ]HH[", "brackets"),
        ("yyyy-MM-dd #", "`#`"),
    ],
)
def test_a_pattern_that_java_would_not_take_is_refused(text: str, word: str) -> None:
    with pytest.raises(Refusal) as caught:
        java_pattern(text)
    assert word in caught.value.what
