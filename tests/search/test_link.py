"""Links that open a source at the place of a chunk, and none that a page must not carry."""

from __future__ import annotations

from typing import Any

import pytest

from search.link import link_of, locator_of
from sinks.document import Document


def document(**fields: Any) -> Document:
    base: dict[str, Any] = {
        "id": "c",
        "chunk_id": "c",
        "parent_id": "p",
        "text_hash": "sha256:0",
        "document_id": "d",
        "schema_version": "chunks.v1",
        "text": "text",
    }
    return Document(**{**base, **fields})


@pytest.mark.parametrize(
    ("fields", "link"),
    [
        ({"source_uri": "https://x.org/a.pdf", "page_start": 3}, "https://x.org/a.pdf#page=3"),
        ({"source_uri": "slides.pptx", "slide_number": 7}, "slides.pptx#slide=7"),
        ({"source_uri": "talk.mp3", "timestamp_start": 12.5}, "talk.mp3#t=12.5"),
        ({"source_uri": "guide.md", "headings": ("Guide", "How it's done, here")}, "guide.md#how-its-done-here"),
        ({"source_uri": "guide.md", "headings": ("安装",)}, "guide.md#%E5%AE%89%E8%A3%85"),
        ({"source_uri": "book.xml", "anchor": "ch 1", "page_start": 3}, "book.xml#ch%201"),
        ({"source_uri": "file:///docs/a.md"}, "file:///docs/a.md"),
        ({"source_uri": "https://x.org/a#own", "page_start": 3}, "https://x.org/a#own"),
    ],
)
def test_the_fragment_says_where(fields: dict[str, Any], link: str) -> None:
    assert link_of(document(**fields)) == link


@pytest.mark.parametrize(
    "uri",
    [
        None,
        "",
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "\x01javascript:alert(1)",
        "data:text/html,<script>1</script>",
        "vbscript:x",
        "//evil.example/x",
        "\\\\evil.example\\x",
        "/\\evil.example",
        "mailto:a@b.c",
        "http://[broken",
    ],
)
def test_no_link_where_a_page_must_not_carry_it(uri: str | None) -> None:
    assert link_of(document(source_uri=uri)) is None


def test_the_locator_names_what_is_known() -> None:
    found = locator_of(document(page_start=3, page_end=4, headings=("A", "B"), start_offset="1/2/3", char_start=0))
    assert found == {"page_start": 3, "page_end": 4, "section": "A > B", "start_offset": "1/2/3", "char_start": 0}
