"""The format as a whole: a file in, a family and notices out."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.identity import family_key, parent_id
from chunksink.ingest.codes import (
    FENCE_UNCLOSED,
    NUL_REMOVED,
    SOURCE_EMPTY,
)
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.markdown import MarkdownFormat
from chunksink.ingest.formats.markdown.document import Block, Kind, Structure
from chunksink.ingest.formats.markdown.structure import parse
from chunksink.ingest.model import Empty, Family, Item, Notice
from tests.ingest.markdown.support import chunks_of, codes_of, items_of, source_of


def read(tmp_path: Path, data: bytes, read_bytes: int | None = None, tenant: str | None = None) -> list[Item]:
    path = tmp_path / "a.md"
    path.write_bytes(data)
    return list(MarkdownFormat().read(source_of(data[:read_bytes], "a.md", tenant, path)))


def test_read_yields_one_family_by_the_declared_versions(tmp_path: Path) -> None:
    (family,) = read(tmp_path, b"# A\n\nText.\n\n# B", tenant="acme")
    assert isinstance(family, Family) and not family.is_partial
    assert list(family.chunks) == chunks_of("# A\n\nText.\n\n# B", uri="a.md", tenant="acme")
    provenance = family.chunks[0]["provenance"]
    markdown = MarkdownFormat()
    assert tuple(provenance["parser"].values()) == markdown.parser
    assert tuple(provenance["canonicalizer"].values()) == markdown.canonicalizer


def test_read_takes_only_the_bytes_of_the_source(tmp_path: Path) -> None:
    family, *_ = read(tmp_path, b"# A\n\nText that was appended.", read_bytes=3)
    assert isinstance(family, Family)
    assert [chunk["text"] for chunk in family.chunks] == ["# A"]


@pytest.mark.parametrize("tenant", [None, "acme"])
@pytest.mark.parametrize("data", [b"", b" \n", b"\xef\xbb\xbf", b"![](data:image/png;base64,AAAA)"])
def test_read_without_text_yields_the_key_of_the_empty_family(tmp_path: Path, data: bytes, tenant: str | None) -> None:
    notice, empty = read(tmp_path, data, tenant=tenant)
    assert isinstance(notice, Notice) and (notice.code, notice.is_failure) == (SOURCE_EMPTY, False)
    (chunk,) = chunks_of("Text", uri="a.md", tenant=tenant)
    assert empty == Empty(family_key(parent_id(chunk), tenant))


def test_chunk_longer_than_a_line_of_a_partition_fails_its_source() -> None:
    with pytest.raises(SourceFailed, match="chunk 1 ") as failure:
        chunks_of("# Wide\n\n```\na" + " " * 9_000_000 + "b\n```\n")
    assert failure.value.code == findings.LINE_TOO_LONG


def test_title_that_json_cannot_carry_fails_its_source() -> None:
    document = Structure("Text", (Block(Kind.PROSE, 0, 4, 0),), ((),), (), {"title": "\ud800"})
    with pytest.raises(SourceFailed) as failure:
        items_of(document, source_of(b""))
    assert failure.value.code == findings.JSON_PARSE


def test_notices_come_after_the_family_and_are_no_failures() -> None:
    text = "nul\0\n\n```\nx"
    family, *notices = items_of(parse(text), source_of(text.encode()))
    assert isinstance(family, Family)
    found = [(notice.code, notice.is_failure) for notice in notices if isinstance(notice, Notice)]
    assert found == [(FENCE_UNCLOSED, False), (NUL_REMOVED, False)]


UNCLOSED = [
    *("```\nx\n", "```\nx", "# A\n\n~~~ python\nx\n\n# no heading\n", "~~~\n```\nx\n```\n", "````\nx\n```\n", "```"),
    *("> ```\n> x\n\nText.", "- ```\n  x\n\nText.", "1. a\n\n   ```\n   x\n\n   y\n\nText.", "```\nx\n```\n\n```\ny\n"),
]
CLOSED = [
    *("```\nx\n```", "```\n```\n", "~~~\nx\n\n~~~", "> ```\n> x\n> ```", "> ```\n> ```", "- ```\n  x\n  ```\n\nText."),
    *("1. a\n\n   ```\n   x\n\n   ```\n\nText.", "    ```\n    x\n", "`` ` ``", "   ```\n   x\n  ````\n"),
]


@pytest.mark.parametrize(
    ("text", "codes"), [*((text, [FENCE_UNCLOSED]) for text in UNCLOSED), *((text, []) for text in CLOSED)]
)
def test_unclosed_fence_is_reported(text: str, codes: list[str]) -> None:
    assert codes_of(f"Words.\n\n{text}") == codes


def test_importing_the_format_does_not_import_the_library() -> None:
    module = importlib.import_module("chunksink.ingest.formats.markdown")
    program = (
        f"import sys; from {module.__name__} import MarkdownFormat as F; F().parser; F().canonicalizer;"
        "import chunksink.ingest.formats.markdown.addresses; sys.exit('markdown_it' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
