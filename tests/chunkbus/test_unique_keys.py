"""A repeated key is always refused: parsers keep one of its values, and not all keep the same."""

import json
import time

import orjson
from hypothesis import given
from hypothesis import strategies as st

from chunksink.chunkbus import findings
from chunksink.chunkbus.diagnosis import diagnose_json, proves_unique_keys
from chunksink.chunkbus.record_checks import examine_line
from tests.chunkbus.samples import chunk, line_of

SPACE = st.text(" \t\r\n", max_size=3)
# Few names, so that repeated ones are common; some look like the end of a key.
NAMES = st.sampled_from(["a", "b", "", '"', '":', " :", "\\", '\\"', "ä"])
SCALARS = st.sampled_from([None, True, 1, -2.5, "x", '":', '" :', "a : b", ' "a" : '])


@st.composite
def spaced_json(draw: st.DrawFn, depth: int = 3) -> tuple[str, bool]:
    """JSON text with any white space, and whether a key occurs twice in one of its objects."""
    kind = draw(st.sampled_from(["scalar", "list", "object"])) if depth else "scalar"
    if depth == 3:
        kind = "object"
    if kind == "scalar":
        return json.dumps(draw(SCALARS)), False
    parts, twice = [], False
    names: set[str] = set()
    for _ in range(draw(st.integers(0, 3))):
        value, twice_within = draw(spaced_json(depth - 1))
        twice |= twice_within
        if kind == "object":
            name = draw(NAMES)
            twice |= name in names
            names.add(name)
            value = json.dumps(name) + draw(SPACE) + ":" + draw(SPACE) + value
        parts.append(draw(SPACE) + value + draw(SPACE))
    opening, closing = "{}" if kind == "object" else "[]"
    return opening + (",".join(parts) or draw(SPACE)) + closing, twice


@given(spaced_json())
def test_proves_unique_keys_when_a_key_repeats_is_false(text_and_truth: tuple[str, bool]) -> None:
    text, twice = text_and_truth
    line = text.encode()
    proven = proves_unique_keys(line, orjson.loads(line))
    assert not (proven and twice)
    assert (diagnose_json(line) is not None) is twice  # the slow path is exact


@given(spaced_json(), st.booleans())
def test_line_when_a_key_repeats_is_refused(text_and_truth: tuple[str, bool], first: bool) -> None:
    text, twice = text_and_truth
    text = text.replace("\n", " ").replace("\r", " ")
    compact = line_of(chunk())
    extra = b'"metadata":' + text.encode()
    line = b"{" + extra + b"," + compact[1:] if first else compact[:-1] + b"," + extra + b"}"
    found, problems = examine_line(line)
    assert [problem.code for problem in problems] == ([findings.JSON_PARSE] if twice else [])
    assert (found is None) is twice


def test_line_when_one_of_many_keys_repeats_is_refused_fast() -> None:
    keys = b",".join(b'"%d":0' % number for number in range(200_000))
    started = time.process_time()
    problem = diagnose_json(b"{" + keys + b',"199999":1}')
    assert problem is not None
    assert "'199999'" in problem.detail
    assert time.process_time() - started < 10  # comparing each with each would take minutes
