"""The recipes for bytes and hashes, on random values."""

import json
import math
import unicodedata
from datetime import date
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from chunksink.chunkbus.canonical import canonical_json, canonical_text, chunk_object_hash, json_hash
from chunksink.chunkbus.errors import NotCanonical
from tests.conftest import sampled

SAFE = 2**53 - 1
numbers = st.integers(-SAFE, SAFE) | st.floats(allow_nan=False, allow_infinity=False)
# UTF-8 and UTF-16 sort these differently.
keys = st.text() | st.text("a\ud7ff\ue000\ufb33\uffff\U00010000\U0001f600", max_size=2)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(keys, values, max_size=4),
    max_leaves=20,
)
any_text = st.text(st.characters(codec=None))  # with lone surrogates


@given(json_values)
def test_canonical_json_is_rfc_8785(value: Any) -> None:
    encoded = canonical_json(value)
    assert encoded == rfc8785.dumps(value)
    assert canonical_json(json.loads(encoded, parse_int=float)) == encoded  # as a language with only floats reads it


@given(st.floats(1e-7, 1e22) | st.decimals(-1000, 1000, places=3).map(float))
@example(math.nextafter(1e-4, 0))
@example(1e-4)
@example(math.nextafter(1e15, 0))
@example(1e15)
@example(-0.0)
def test_canonical_json_writes_decimal_floats_as_rfc_8785(value: float) -> None:
    assert canonical_json([value]) == rfc8785.dumps([value])


@given(st.dictionaries(st.text(), st.integers(-SAFE, SAFE), min_size=2))
def test_canonical_json_does_not_depend_on_key_order(value: dict[str, int]) -> None:
    assert json_hash(value) == json_hash(dict(reversed(value.items())))


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, SAFE + 1, -SAFE - 1, "\ud800", {"\udfff": 1}, {1: 2}, {"x": {1, 2}}, object()],
)
def test_canonical_json_when_not_portable_is_refused(value: Any) -> None:
    with pytest.raises(NotCanonical):
        canonical_json(value)
    with pytest.raises(NotCanonical):
        canonical_json({"deep": [value]})


@pytest.mark.parametrize("depth", [300, 5_000])
def test_canonical_json_when_nested_too_deeply_is_refused(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    with pytest.raises(NotCanonical):
        canonical_json(value)


@given(any_text)
@example(" \ufeffa")
@example("\ufeff\ufeffa")
@example("\ufeff\x00 \ufeff\u2028x\ufeff ")
def test_canonical_text_is_idempotent_and_can_be_written(text: str) -> None:
    once = canonical_text(text)
    assert canonical_text(once) == once
    assert once == once.strip()
    assert not once.startswith("\ufeff")
    assert all(c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs") for c in once)
    assert len(once.encode().split(b"\r")) == 1


@pytest.mark.parametrize("around", ["ab", "é中", "’\U0001f600"])
def test_canonical_text_finds_every_character_that_it_changes(around: str) -> None:
    """Each alone in a text, because the fast path skips texts without such characters."""
    first, last = around
    codes = [*range(0x3000), *range(0xD700, 0xE100), *sampled(range(0xE100, 0x110000), 97)]
    changed = {code: canonical_text(f"{first}{chr(code)}{last}") for code in codes}
    changed = {code: text for code, text in changed.items() if text != f"{first}{chr(code)}{last}"}
    breaks = {0x0B, 0x0C, 0x0D, 0x85, 0x2028, 0x2029}
    gone = {
        code for code in [*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000)] if chr(code) not in "\t\n"
    } - breaks
    assert {code for code, text in changed.items() if text == f"{first}\n{last}"} == breaks
    assert {code for code, text in changed.items() if text == first + last} == gone
    assert changed.keys() == breaks | gone
    assert canonical_text(f"{first}\r\n{last}") == f"{first}\n{last}"


@given(any_text)
def test_canonical_text_removes_only_documented_characters(text: str) -> None:
    def visible(value: str) -> str:
        return "".join(c for c in value if not c.isspace() and unicodedata.category(c) not in ("Cc", "Cs"))

    assert visible(canonical_text(text)).lstrip("\ufeff") == visible(text).lstrip("\ufeff")


def test_chunk_object_hash_covers_every_field_except_itself() -> None:
    record = {"a": 1, "b": {"c": [1, 2]}, "hashes": {"text_hash": "x", "chunk_object_hash": "y"}}
    same = {**record, "hashes": {"text_hash": "x", "chunk_object_hash": "other"}}
    assert chunk_object_hash(record) == chunk_object_hash(same)
    assert record["hashes"] == {"text_hash": "x", "chunk_object_hash": "y"}
    for other in ({**record, "a": 2}, {**record, "b": {"c": [2, 1]}}, {**record, "hashes": {"text_hash": "z"}}):
        assert chunk_object_hash(other) != chunk_object_hash(record)


@pytest.mark.parametrize("value", [date(2026, 1, 31), math.nan, {1, 2}, "\ud800"])
def test_value_without_a_json_form_is_named_by_its_path(value: object) -> None:
    with pytest.raises(NotCanonical, match=r"^metadata\.deep\.1\.when "):
        canonical_json({"text": "a", "metadata": {"ok": 1, "deep": [0, {"when": value}]}})
