"""Links open a source at the place of a chunk; unsafe addresses get no link."""

from typing import Any
from urllib.parse import quote

import pytest

from chunksink.search.link import link_of, locator_of, name_of
from tests.search.support import document


@pytest.mark.parametrize(
    ("fields", "link"),
    [
        ({"source_uri": "https://x.org/a.pdf", "page_start": 3}, "https://x.org/a.pdf#page=3"),
        ({"source_uri": "slides.pptx", "slide_number": 7}, "slides.pptx#slide=7"),
        ({"source_uri": "talk.mp3", "timestamp_start": 12.5}, "talk.mp3#t=12.5"),
        (
            {"source_uri": "guide.md", "file_type": "md", "headings": ("Guide", "How it's done, here")},
            "guide.md#how-its-done-here",
        ),
        (
            {"source_uri": "https://x.org/guide", "mime_type": "text/markdown", "headings": ("安装",)},
            "https://x.org/guide#%E5%AE%89%E8%A3%85",
        ),
        ({"source_uri": "a.md", "file_type": "md", "headings": ("अधिक ज्ञान!",)}, f"a.md#{quote('अधिक-ज्ञान')}"),
        ({"source_uri": "a.html", "file_type": "html", "headings": ("Guide",)}, "a.html"),
        ({"source_uri": "a.pdf", "file_type": "pdf", "headings": ("Guide",), "page_start": 3}, "a.pdf#page=3"),
        ({"source_uri": "book.xml", "anchor": "ch 1", "page_start": 3}, "book.xml#ch%201"),
        ({"source_uri": "https://x.org/a#own", "page_start": 3}, "https://x.org/a#own"),
        ({"source_uri": "log.jsonl", "start_offset": "s 1/12/345"}, "log.jsonl#offset=s%201/12/345"),
        (
            {"source_uri": "demo.cast#pane=0&part=0", "timestamp_start": 3.3, "start_offset": "0/2/61"},
            "demo.cast#pane=0&part=0&t=3.3&offset=0/2/61",
        ),
        ({"source_uri": "https://x.org/a.pdf#page=2&zoom=50", "page_start": 3}, "https://x.org/a.pdf#page=2&zoom=50"),
        ({"source_uri": "book.xml#ch1", "page_start": 3}, "book.xml#ch1"),
        (
            {"source_uri": "guide.md", "file_type": "md", "headings": ("A b",), "start_offset": "0/1/2"},
            "guide.md#a-b",
        ),
    ],
)
def test_fragment_contains_the_place(fields: dict[str, Any], link: str) -> None:
    assert link_of(document(**fields)) == link


@pytest.mark.parametrize(
    ("source", "link"),
    [
        ("My notes/100%20 why?.md", "My%20notes/100%2520%20why%3F.md#q"),
        ("C# notes.md", "C%23%20notes.md#q"),
        ("notes#1.md", "notes%231.md#q"),
        ("note: plan.md", "note%3A%20plan.md#q"),
        ("über/安.md", "%C3%BCber/%E5%AE%89.md#q"),
        (" javascript: alert(1)", "%20javascript%3A%20alert%281%29#q"),
        ("https://x.org/a%20b.pdf?c=d e", "https://x.org/a%20b.pdf?c=d%20e#q"),
        ("file:///My notes/a.md", "file:///My%20notes/a.md#q"),
    ],
)
def test_file_names_are_quoted(source: str, link: str) -> None:
    """A source without a scheme is a file name. In web addresses only spaces are quoted."""
    assert link_of(document(source_uri=source, file_type="md", headings=("Q",))) == link


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("docs/C# why?.md", "C# why?.md"),
        ("logs/demo.cast#pane=0&part=0", "demo.cast"),
        ("https://x.org/y/a.pdf?b=c/d#e/f", "a.pdf"),
        ("http://a]b/c.md", "c.md"),
        ("", ""),
    ],
)
def test_name_of_returns_the_file_name(source: str, name: str) -> None:
    assert name_of(source) == name


@pytest.mark.parametrize(
    "uri",
    [
        None,
        "",
        " JavaScript:alert(1)",
        "java\nscript:alert(1)",
        "\x01javascript:alert(1)",
        "data:text/html,<script>1</script>",
        "//evil.example/x",
        "/\\evil.example",
        "http://[broken",
        "https://x.org/\n",
    ],
)
def test_unsafe_sources_have_no_link(uri: str | None) -> None:
    assert link_of(document(source_uri=uri)) is None


def test_locator_has_only_known_fields() -> None:
    found = locator_of(document(page_start=3, page_end=4, headings=("A", "B"), start_offset="1/2/3", char_start=0))
    assert found == {"page_start": 3, "page_end": 4, "section": "A > B", "start_offset": "1/2/3", "char_start": 0}


def test_locator_before_the_first_heading_has_no_section() -> None:
    assert "section" not in locator_of(document(section="/"))
    assert "section" not in locator_of(document(section="/front_matter"))
    assert "section" not in locator_of(document(section="/ul[6]/code[1]"))
    assert locator_of(document(section="/etc/hosts"))["section"] == "/etc/hosts"
