"""The reference of commands says what the commands say of themselves."""

from __future__ import annotations

from tools.commands_reference import PAGE, page


def test_the_page_of_commands_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tools/commands_reference.py"
