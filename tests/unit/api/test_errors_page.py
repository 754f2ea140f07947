from __future__ import annotations

from tools.errors_reference import PAGE, kinds, page


def test_the_page_of_errors_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_kind_of_error_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in kinds()]
    assert len(codes) == len(set(codes))
