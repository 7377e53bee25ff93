"""Parts of texts: whole words, and of a script without spaces as much as there is room for."""

from __future__ import annotations

from search.excerpt import beginning, ending

CHINESE = "Rust 里的所有权是一组规则它管理程序如何使用内存"


def test_what_fits_is_shown_whole() -> None:
    assert beginning("one two", 7) == ending("one two", 7) == "one two"


def test_words_stay_whole() -> None:
    assert beginning("one two three", 9) == "one two …"
    assert ending("one two three", 11) == "… two three"


def test_a_giant_is_cut_through() -> None:
    assert beginning("x" * 10, 7) == "xxxxxxx…"
    assert beginning("a " + "x" * 10, 7) == "a xxxxx…"
    assert ending("x" * 10 + " a", 7) == "…xxxxx a"


def test_a_script_without_spaces() -> None:
    assert beginning(CHINESE, 12) == "Rust 里的所有权是一…"
    assert ending(CHINESE, 12) == "…则它管理程序如何使用内存"
    assert ending(f"{CHINESE} 和 b", 12) == "…程序如何使用内存 和 b"
