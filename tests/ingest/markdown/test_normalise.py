"""From bytes to normalised text: encodings, control characters, separators, white space."""

import pytest

from chunksink.ingest.codes import CHUNKING_FAILED
from chunksink.ingest.errors import SourceFailed
from tests.ingest.markdown.support import chunks_of, normalise, texts_of

BINARY = r"control characters.*iconv.*--exclude"
SEPARATORS = ["\x0b", "\x0c", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("sign", SEPARATORS)
def test_separator_separates_words_and_not_lines(sign: str) -> None:
    assert chunks_of(f"# One{sign}two\n\nText.")[-1]["metadata"]["headings_path"] == ["One two"]
    assert texts_of(f"Steps:{sign}# none") == ["Steps: # none"]
    assert texts_of(f"| a |\n|---|\n| x{sign}y |{sign}\n| z |") == ["| a |\n|---|\n| x y |\n| z |"]


@pytest.mark.parametrize("sign", SEPARATORS)
def test_separator_in_code_adds_no_line_and_no_indentation(sign: str) -> None:
    assert normalise(f"```\n{sign}def f():\n    a{sign}b\n{sign}\n```") == "```\ndef f():\n    a b\n\n```"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"# Top\n\xff\n", r"0xff at offset 6, line 2"),
        ("Müller".encode("windows-1252"), r"byte 0xfc at offset 1, line 1.*iconv -f WINDOWS-1252"),
        *(("\ufeff# A".encode(f"utf-16-{order}"), "iconv -f UTF-16 -t UTF-8") for order in ("le", "be")),
        *(("Привет мир".encode(f"utf-16-{order}"), BINARY) for order in ("le", "be")),
        *((text.encode("utf-16-le"), BINARY) for text in ("ok", "Plain words", "Words. " * 10_000)),
        (b"\x7fELF" + bytes(range(32)) + b"words " * 100, BINARY),
        (b"\x89PNG\r\n\x1a\n\x01\x02\x03\xff\xfe", BINARY),
    ],
)
def test_decode_what_is_not_utf8_is_refused_with_the_remedy(data: bytes, reason: str) -> None:
    with pytest.raises(SourceFailed, match=reason) as failure:
        chunks_of(data)
    assert failure.value.code == CHUNKING_FAILED


@pytest.mark.parametrize("data", [b"a\0b", b"\0\0" + b"x" * 198, b"\x01\x02\x1b[1mbold"])
def test_decode_allows_traces_of_control_characters(data: bytes) -> None:
    assert len(chunks_of(data)) == 1


def test_line_ends_and_invisible_characters_are_normalised() -> None:
    assert normalise("a\r\nb\rc\x00d\x0b") == "a\nb\ncd"
    assert normalise("data\u00adbase word\u2060joined \ufeffend\n") == "database wordjoined end\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two  words\tand   tabs", "two words and tabs"),
        ("-   item  text", "-   item text"),
        (">  quoted   text", ">  quoted text"),
        ("#   Head   line", "#   Head line"),
        ("code `a   b`  stays", "code `a   b` stays"),
        ("```\na   b\n```", "```\na   b\n```"),
        ("    indented   code", "    indented   code"),
        ("| a   b |\n|---|\n| c   d |", "| a   b |\n|---|\n| c   d |"),
        ("hard  \nbreak", "hard  \nbreak"),
    ],
)
def test_runs_of_spaces_collapse_in_prose_only(text: str, expected: str) -> None:
    assert normalise(text) == expected
