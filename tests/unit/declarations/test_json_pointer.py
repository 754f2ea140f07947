"""Pointers into JSON documents."""

from __future__ import annotations

from headgate.declarations.errors import json_pointer


def test_steps_become_a_pointer_and_none_is_the_whole_document():
    assert json_pointer(()) == ""
    assert json_pointer(("conditions", 0, "field")) == "/conditions/0/field"
    assert json_pointer(("",)) == "/"


def test_signs_with_a_meaning_are_escaped_so_that_no_two_ways_share_a_pointer():
    assert json_pointer(("a/b", "c~d", "~1")) == "/a~1b/c~0d/~01"
    assert json_pointer(("a", "b")) != json_pointer(("a/b",))
