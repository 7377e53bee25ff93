"""Ids and counts that must never change: another implementation of the formula has to agree with these."""

import hashlib
import sys

from chunksink.ingest.formats.markdown import tokens
from chunksink.ingest.formats.markdown.records import canonical_chunk_text
from tests.ingest.markdown.support import chunks_of

TEXT = "# Tea\n\nGreen  tea steeps at 80 °C.\n\n```sh\nboil   --to 80\n```\n\n茶。\n"


def test_chunk_id_follows_the_formula() -> None:
    prose, code, chinese = chunks_of(TEXT, uri="kitchen/tea.md", tenant="acme")
    version = hashlib.sha256(TEXT.encode()).hexdigest()
    canonical = {
        0: (prose, "# Tea Green tea steeps at 80 °C."),
        1: (code, "```sh\nboil   --to 80\n```"),
        2: (chinese, "茶。"),
    }
    for ordinal, (record, text) in canonical.items():
        key = f"acme|{record['document_id']}|{version}|{ordinal}|{text}"
        assert record["chunk_id"] == hashlib.sha256(key.encode()).hexdigest()


def test_canonical_text_collapses_white_space_in_prose_and_in_the_overlap_of_code() -> None:
    spaces = [character for character in map(chr, range(sys.maxunicode + 1)) if character.isspace()]
    assert len(spaces) > 25
    for space in spaces:
        for prose in (f"a{space}b", f"a {space}b", f"a{space}\n\nb\n", f" a \nb{space}", f"{space}\n a\n  b"):
            assert canonical_chunk_text(prose, "prose", 0) == "a b", ascii(space)
            assert canonical_chunk_text(f"{prose}x  y", "code", len(prose)) == "a b\nx  y", ascii(space)
        assert canonical_chunk_text(f"{space}\n{space}", "prose", 0) == ""


def test_golden_ids_do_not_change() -> None:
    found = [(r["chunk_id"], r["hashes"]["text_hash"], r["metadata"]["token_count"]) for r in chunks_of(TEXT)]
    assert found == GOLDEN


def test_golden_token_counts_do_not_change() -> None:
    counts = {
        "": 0,
        " \n\t\u3000": 0,
        "tea": 1,
        "seventh": 1,
        "eighteen": 2,
        "2026": 2,
        "a_b": 3,
        "e.g.": 4,
        "茶叶。": 3,
    }
    counts |= {"茶叶。": 3, "cafe\u0301": 1, "\U0001f469\u200d\U0001f4bb\U0001f44d\U0001f3fd": 2, "नमस्ते": 1, "한국": 2}
    assert {text: tokens.count(text) for text in counts} == counts
    assert tokens.VERSION == "words-1"


GOLDEN = [
    (
        "f23b26933570772b7d9c9727ed45fa8edc0f1cf92bc9dbf3ae4cfc03feef1ddb",
        "sha256:3056750db546269ff201238e59705d1caf094c56f5e8a5a3ddc7115f3ece0ab5",
        10,
    ),
    (
        "3fd9fde7717afd99f5f772ed5b6f75558709d73d3eeb02e7fa4e91c5f42b62d6",
        "sha256:722d7de2426154e7cd177c851d6896ef9d82675b3b5cc149bd52e71fd224c434",
        12,
    ),
    (
        "35180e98642b8b510dbd6ff032431d768594841e03074941b4978d2020b438ec",
        "sha256:83440c4346f649d12b3b6fe3770eebbec6da9d2ae4b96c221f9d0c98c3ad6d75",
        2,
    ),
]
