"""A possessive group never backtracks, in any Python version."""

import re
import sys

import pytest

from chunksink.chunkbus import patterns
from chunksink.chunkbus.patterns import possessive


@pytest.mark.parametrize(
    "has_groups",
    [
        False,
        pytest.param(True, marks=pytest.mark.skipif(sys.version_info < (3, 11, 5), reason="finds other ends there")),
    ],
)
def test_nothing_is_given_back(has_groups: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_HAS_POSSESSIVE_GROUPS", has_groups)
    assert re.fullmatch(r"(?:ab?)*ab", "abab")
    assert not re.fullmatch(possessive("ab?") + "ab", "abab")
    assert re.fullmatch(possessive(r"\n[ ]*\w[^\n]*") + r"\n-", "\na b\n c\n-")
    assert re.fullmatch(possessive("a|b", "+") + "c", "abbac")
    assert not re.fullmatch(possessive("a|b", "+") + "c", "c")
