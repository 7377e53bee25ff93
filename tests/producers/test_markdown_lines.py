"""What ends a line for the contract and not for Markdown tears nothing."""

import pytest

from chunksink.producers.markdown import normalise
from tests.producers.support import chunks_of, texts_of

SEPARATORS = ["\x0b", "\x0c", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("sign", SEPARATORS)
def test_a_separator_parts_words_and_no_lines(sign: str) -> None:
    assert chunks_of(f"# One{sign}two\n\nText.")[-1]["metadata"]["headings_path"] == ["One two"]
    assert texts_of(f"Steps:{sign}# none") == ["Steps: # none"]
    assert texts_of(f"| a |\n|---|\n| x{sign}y |{sign}\n| z |") == ["| a |\n|---|\n| x y |\n| z |"]


@pytest.mark.parametrize("sign", SEPARATORS)
def test_in_code_it_moves_no_line_and_makes_none(sign: str) -> None:
    assert normalise(f"```\n{sign}def f():\n    a{sign}b\n{sign}\n```") == "```\ndef f():\n    a b\n\n```"
