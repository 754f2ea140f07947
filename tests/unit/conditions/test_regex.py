from __future__ import annotations

import re
import time
from random import Random

import pytest
from tests.support.random_regexes import (
    accepted_patterns,
    hostile_texts,
    matches_anywhere,
    random_pattern,
    repeated_group,
    short_texts,
)
from tests.support.regex_patterns import ACCEPTED

from headgate.conditions.regex.nodes import PatternRefusal, Repeat
from headgate.conditions.regex.parse import read
from headgate.conditions.regex.pattern import canonical, compiled, python_text

SEED = 7
QUICK = 60
MOST_SECONDS = 0.050
CHARACTER_CLASS = re.compile(r"\\.|\[(?:\\.|[^\]])*\]")

# The beginning of the pattern, what is said of it, and where.
REFUSED = {
    r"(?=a)b": ("looks ahead", 1),
    r"^(?!a)b": ("looks ahead", 2),
    r"(?<=a)b": ("looks behind", 1),
    r"(?<!a)b": ("looks behind", 1),
    r"(?<n>a)": ("has a name", 1),
    r"(?P<n>a)": ("has a name", 1),
    r"(?>a)": ("atomic", 1),
    r"(?i)a": ("flag", 1),
    r"(?m)^a": ("flag", 1),
    r"(?#c)a": ("comment", 1),
    r"(a)\1": ("back reference", 4),
    r"\ka": ("back reference", 1),
    r"\bword": ("word boundary", 1),
    r"\p{L}": ("Unicode class", 1),
    r"a\Z": ("\\Z", 2),
    r"\Qa\E": ("quotation", 1),
    r"\R": ("\\R", 1),
    r"\ea": ("\\e", 1),
    r"\07": ("back reference", 1),
    "a\\": ("backslash ends", 2),
    r"\x{110000}": ("no character", 1),
    r"\uD800": ("no character", 1),
    r"a*?": ("lazy", 3),
    r"^a++b": ("possessive", 2),
    r"ab(a++)": ("possessive", 4),
    r"a**": ("side by side", 3),
    r"*a": ("repeats nothing", 1),
    r"a|+": ("repeats nothing", 3),
    r"a{,3}": ("begins no repetition", 2),
    r"a{": ("begins no repetition", 2),
    r"a{3,2}": ("greater number", 2),
    r"a{2000}": ("more than 1000", 2),
    r"a{99999999999999999999}": ("more than 1000", 2),
    r"^*": ("anchor is repeated", 1),
    r"(a": ("not closed", 1),
    r"a)": ("not opened", 2),
    r"[a": ("not closed", 1),
    r"[]": ("empty", 2),
    r"[^\s\S]": ("no character", 1),
    r"[z-a]": ("no range", 3),
    r"[a-\d]": ("no range", 3),
    r"[a[b]]": ("Java", 3),
    r"[a&&b]": ("Java", 3),
    r"[[:alpha:]]": ("Java", 2),
    r"a*": ("every text", 0),
    r"": ("every text", 0),
    r"^": ("every text", 0),
    r"^a*": ("every text", 0),
    r"a*$": ("every text", 0),
    r"(^|a)": ("every text", 0),
    r"(a+)+$": ("share a text", 2),
    r"(a*)*b": ("`(a*)*` repeats what can be empty", 1),
    r"^x(a?b?){3}$": ("`(a?b?){3}` repeats what can be empty", 3),
    r"^(a|)*$": ("`(a|)*` repeats what can be empty", 2),
    r"^(a*|b*)c$": ("`c` can be reached in two ways", 9),
    r"^\S+@\S+$": ("two repetitions, at `\\S` and at `\\S`, can take the same text", 6),
    r"^\d*\.?\d+$": ("the same text", 8),
    r".*foo": ("the repetition at `.` can be come to from many places", 1),
    r"foo.*$": ("many places", 4),
    r"(foo.*|bar)": ("many places", 5),
    r"a+^": ("many places", 1),
    r"\s+$": ("many places", 1),
    r"\d+-\d+": ("many places", 1),
    r"^a(,a)*": ("where a round of `(,a)*` ends", 3),
    r"^(a|b)*a$": ("where a round of `(a|b)*` ends", 2),
    r"^(\w+\s?)*$": ("share a text", 3),
    r"^(a|aa)+$": ("share a text", 3),
    r"^(a|a?b)*(c|d)*$": ("", None),
    r"^(.*a){12}$": ("the same text", None),
    r"(.*a){12}$": ("", None),
    r"x.*y.*z": ("the same text", 5),
    r"^.*foo.*$": ("the same text", 7),
    r"^(a|ab)*c$": ("round", 2),
    r"^(ab|c){0,65}$": ("up to 65 times", 2),
    r"^.{1000}.{1000}$": ("places", None),
    r"[a-z]{300}x": ("too many ways", 0),
    "(" * 41 + "a" + ")" * 41: ("nested too deeply", 41),
    "a" * 4_001: ("too long", 0),
}


@pytest.mark.parametrize("pattern", ACCEPTED)
def test_what_people_write_is_accepted_and_means_what_it_says(pattern: str) -> None:
    good, bad = ACCEPTED[pattern]
    assert compiled(canonical(pattern)).search(good)
    assert not compiled(canonical(pattern)).search(bad)
    assert matches_anywhere(pattern, good)
    assert not matches_anywhere(pattern, bad)


def test_there_are_many_of_them() -> None:
    assert len(ACCEPTED) >= 60


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda pattern: pattern[:20])
def test_what_is_outside_is_refused_with_its_place_and_a_remedy(pattern: str) -> None:
    words, place = REFUSED[pattern]
    with pytest.raises(PatternRefusal) as caught:
        canonical(pattern)
    refusal = caught.value
    assert words in f"{refusal.what} {refusal.why}"
    assert refusal.fix
    assert place is None or refusal.position == place
    assert not refusal.position or f"at character {refusal.position}" in refusal.what


def test_the_end_is_the_very_end_and_a_line_break_is_no_end() -> None:
    assert not compiled("^a$").search("a\n")
    assert not compiled("a.b").search("a\u2028b")
    assert not compiled("a.b").search("a\rb")
    assert compiled("^a[^b]$").search("a\n")


def test_classes_are_ascii_in_both_engines() -> None:
    assert canonical(r"^\d$") == "^[0-9]\\z"
    assert not compiled(r"\d").search("\u0663")
    assert not compiled(r"\w").search("é")
    assert not compiled(r"\s").search("\u00a0")
    assert compiled(r"^\W$").search("é")


def test_characters_beyond_the_first_plane_are_single_characters() -> None:
    assert compiled("^.$").search("\U0001f600")
    assert compiled("^[\U0001f600-\U0001f64f]{2}$").search("\U0001f600\U0001f601")
    assert compiled("^[^a]{1}$").search("\U0010ffff")


@pytest.mark.heavy
def test_what_can_never_be_written_out_is_refused_quickly() -> None:
    began = time.thread_time()
    for pattern in ("((((a{9}){9}){9}){9}){9}", "(a|b|c|d){64}{3}", "^(.{1,9}x){1,64}$"):
        with pytest.raises(PatternRefusal):
            canonical(pattern)
    assert time.thread_time() - began < 2


@pytest.mark.heavy
def test_a_canonical_pattern_is_its_own_canonical_pattern() -> None:
    for pattern in (*ACCEPTED, *accepted_patterns(Random(SEED), QUICK)):
        assert canonical(canonical(pattern)) == canonical(pattern)
        assert python_text(canonical(pattern)) == python_text(pattern)


@pytest.mark.heavy
def test_writing_a_pattern_for_an_engine_changes_no_answer() -> None:
    random = Random(SEED)
    print("seed", SEED)
    differing = [
        (pattern, text)
        for pattern in accepted_patterns(random, QUICK)
        for text in short_texts(random, pattern, 8)
        if matches_anywhere(pattern, text) != bool(compiled(pattern).search(text))
    ]
    assert not differing


@pytest.mark.heavy
def test_repeated_groups_mean_the_same_when_no_round_is_given_back() -> None:
    random = Random(SEED)
    print("seed", SEED)
    patterns = accepted_patterns(random, QUICK, repeated_group)
    assert any(")*+" in canonical(pattern) for pattern in patterns)
    differing = [
        (pattern, text)
        for pattern in patterns
        for text in short_texts(random, pattern, 8)
        if matches_anywhere(pattern, text) != bool(compiled(pattern).search(text))
    ]
    assert not differing


@pytest.mark.heavy
def test_python_is_asked_without_possessive_repetitions() -> None:
    """Python's `re` answers them wrongly up to 3.11.4, the last two of these patterns among them."""
    patterns = [
        *ACCEPTED,
        *accepted_patterns(Random(SEED), QUICK, repeated_group),
        r"^((\d{0,40})(é*[a-c]((-{1,3}b)*\w)(([a-c]\sc){1,4}\S(😀+)))*|[\w.])$",
        r"^([a-z0-9]+(-[a-z0-9]+)*\.)+[a-z]{2,}$",
    ]
    for pattern in patterns:
        outside_classes = CHARACTER_CLASS.sub("x", python_text(pattern))
        assert not re.search(r"[*+?}]\+|\(\?>", outside_classes), pattern
        for text in ("cc", "ax", "aa.bb", "a-b.example.org"):
            assert bool(compiled(pattern).search(text)) == matches_anywhere(pattern, text), (
                pattern,
                text,
            )


@pytest.mark.heavy
def test_some_random_patterns_are_accepted_and_some_refused() -> None:
    random = Random(SEED)
    answers = [_is_accepted(random_pattern(random)) for _ in range(300)]
    assert 60 < sum(answers) < 240


@pytest.mark.heavy
def test_python_answers_hostile_texts_in_time() -> None:
    random = Random(SEED)
    print("seed", SEED)
    slow = [
        (pattern, spent)
        for pattern in (*ACCEPTED, *accepted_patterns(random, QUICK // 2))
        for text in hostile_texts(random, pattern)
        if (spent := _seconds(pattern, text)) > MOST_SECONDS
    ]
    assert not slow


def test_a_double_plus_is_read_only_where_it_changes_nothing() -> None:
    written = canonical("^(ab|c)*d$")
    assert written == "^(?:ab|c)*+d\\z"
    assert isinstance(read("a*+"), Repeat)
    assert canonical(written) == written


def _is_accepted(pattern: str) -> bool:
    try:
        canonical(pattern)
    except PatternRefusal:
        return False
    return True


def _seconds(pattern: str, text: str) -> float:
    search = compiled(pattern).search
    began = time.thread_time()
    search(text)
    return time.thread_time() - began
