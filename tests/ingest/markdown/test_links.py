"""Links are found where a reader sees one, kept as written, and placed in the chunk that contains them."""

import pytest

from chunksink.ingest.formats.markdown.addresses import LinkKind, classify, targets
from chunksink.ingest.formats.markdown.parser import MAX_INLINE_CHARACTERS
from chunksink.ingest.formats.markdown.structure import parse
from tests.ingest.markdown.support import chunks_of


def links_of(text: str) -> list[tuple[str, str]]:
    return [(link.url, link.kind) for link in parse(text).links]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](b.md)", [("b.md", "document")]),
        ("[a](<b c.md>)", [("b c.md", "document")]),
        ("**[a](ä.md)**", [("ä.md", "document")]),
        ("[a][r]\n\n[r]: ../x.md", [("../x.md", "document")]),
        ("<https://a.example/b>", [("https://a.example/b", "external")]),
        ("(see https://a.example/b_(c)).", [("https://a.example/b_(c)", "external")]),
        ("(https://a.example/b!)", [("https://a.example/b", "external")]),
        ("https://a.example/b?c=d&amp;e=f.", [("https://a.example/b?c=d&e=f", "external")]),
        (r"https://a.example/b\_c", [("https://a.example/b_c", "external")]),
        ("https://. and https://)", []),
        ("a[^1]\n\n[^1]: https://a.example/b", [("https://a.example/b", "external")]),
        ("[^1]: [b](b.md)\n[^2]: c.md", [("b.md", "document")]),
        ("![alt](p.png)", [("p.png", "image")]),
        ("[![alt](p.png)](b.md)", [("b.md", "document"), ("p.png", "image")]),
        ('<a href="b.md">b</a>', [("b.md", "document")]),
        ('<div>\n<img alt="" src="p.png">\n</div>', [("p.png", "image")]),
        ('<a href=" b.md\n">b</a>', [("b.md", "document")]),
        ("<a@b.example>", [("mailto:a@b.example", "email")]),
        ("| h |\n|---|\n| [a](b.md) |", [("b.md", "document")]),
        ("[a](javascript:alert(1))", [("javascript:alert(1)", "external")]),
        ("`[a](b.md)` and \\[a](b.md)", []),
        ("[[Setup]] and **[[a b/Ü#Part|shown]]**", [("[[Setup]]", "document"), ("[[a b/Ü#Part|shown]]", "document")]),
        ("![[pic.PNG|300]] ![[Note]]", [("[[pic.PNG|300]]", "image"), ("[[Note]]", "document")]),
        (
            "[[#Part]] https://a.example/[[b]]",
            [("[[#Part]]", "anchor"), ("[[b]]", "document"), ("https://a.example/", "external")],
        ),
        ("| h |\n|---|\n| [[a\\|b]] |", [("[[a|b]]", "document")]),
        ("`[[a]]` \\[[a]] [\\[a]] &#91;[a]] [[1]](b.md)", [("b.md", "document")]),
        ("[[1]] [[TOC]] [[_TOC_]] if [[ -f x ]] [[:alpha:]] [[1,2],[3,4]] [[]] [[a\nb]]", []),
        ("    [[a]]\n\n```\n[[a]]\n```", []),
    ],
)
def test_links_of_every_syntax_are_found(text: str, expected: list[tuple[str, str]]) -> None:
    assert links_of(text) == expected


CONFLUENCE = [
    "https://acme.atlassian.net/wiki/spaces/ENG/pages/123/Title",
    "https://acme.atlassian.net/l/cp/AbC",
    "https://confluence.acme.example/display/ENG/Title",
    "https://wiki.acme.example/pages/viewpage.action?pageId=42",
    "https://wiki.corp.com/download/attachments/12/f.pdf",
    "https://team.wiki.corp.com/wiki/spaces/ENG/overview",
    "https://docs.acme.example/display/ENG/Title",
    "https://docs.acme.example/display/~jane/Home",
    "https://docs.acme.example/spaces/ENG/pages/123/Title",
    "https://docs.acme.example/x/AbCdEg",
    "https://docs.acme.example/download/attachments/12/f.pdf?version=1",
    "/pages/viewpage.action?pageId=42",
    "/spaces/ENG/pages/123/Title",
]
EXTERNAL = [
    "https://wiki.archlinux.org/title/Pacman",
    "https://wiki.acme.example/index.php?title=Tea",
    "https://confluence.acme.example/wiki/Tea",
    "https://wiki.debian.org/DebianInstaller/x86",
    "https://huggingface.co/spaces/stabilityai/sd",
    "https://golang.org/x/net",
    "https://docs.acme.example/display/settings/monitor.md",
    "https://acme.atlassian.net/browse/ENG-12",
    "https://acme.example/?from=wiki.corp.com",
    "//a.example/x",
    " https://a.example",
]
DOCUMENT = ["/display/DOC/a.md", "spaces/ENG/pages/1/a.md", "/x/AbC", "wiki.corp.com/a", "b.md"]


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        *((url, LinkKind.CONFLUENCE) for url in CONFLUENCE),
        *((url, LinkKind.EXTERNAL) for url in EXTERNAL),
        *((url, LinkKind.DOCUMENT) for url in DOCUMENT),
    ],
)
def test_kind_follows_from_the_address(url: str, kind: LinkKind) -> None:
    assert classify(url) is kind


@pytest.mark.parametrize(
    ("url", "source", "expected"),
    [
        # A source on the web: from its address.
        ("../x.html?a=1#part", "https://a.example/b/c/d.html", ["https://a.example/b/x.html?a=1"]),
        ("/x", "http://a.example/b/", ["http://a.example/x"]),
        ("#part", "https://a.example/b", ["https://a.example/b"]),
        ("//[", "https://a.example/b", []),
        ("[[Note]]", "https://a.example/b", []),
        ("y.md", "s3://bucket/dir/x.md", ["s3:/bucket/dir/y.md"]),
        # Any other source: from its folder, and not above its root.
        ("../b.md#part", "docs/a.md", ["b.md"]),
        ("./sub/../b%20c.md?x", "docs/a.md", ["docs/b c.md"]),
        ("..b/c.md", "docs/a.md", ["docs/..b/c.md"]),
        ("..", "docs/a.md", [""]),
        ("#part", "docs/a.md", ["docs/a.md"]),
        ("../../outside.md", "docs/a.md", []),
        # A wiki link: from its folder, or one above.
        ("[[Setup#Part|shown]]", "s/t/a.md", ["s/t/Setup", "s/Setup", "Setup"]),
        ("[[ a/b |shown]]", "s/t/a.md", ["s/t/a/b", "s/a/b", "a/b"]),
        ("[[100%25]]", "s/t/a.md", ["s/t/100%25", "s/100%25", "100%25"]),
        ("[[#Part]]", "s/t/a.md", ["s/t/a.md"]),
        # A leading slash: from every folder above.
        ("/x/y", "docs/a.md", ["docs/x/y", "x/y"]),
        ("/x/y", "s/t/u/a.md", ["s/x/y", "x/y", "s/t/x/y", "s/t/u/x/y"]),
        ("/x/y", "/s/a.md", ["x/y", "/s/x/y"]),
    ],
)
def test_targets_count_from_the_source(url: str, source: str, expected: list[str]) -> None:
    assert list(targets(url, source)) == expected


def test_link_is_in_the_metadata_of_one_chunk() -> None:
    filler = "Many words stand here to fill the chunk. " * 60
    records = chunks_of(f"# A\n\n[one](1.md) {filler} [two](2.md)\n\n# B\n\n[three](3.md)", uri="docs/a.md")
    placed = [(number, link["url"]) for number, r in enumerate(records) for link in r["metadata"].get("links", ())]
    assert placed == [(0, "1.md"), (len(records) - 2, "2.md"), (len(records) - 1, "3.md")]
    assert records[-1]["metadata"]["links"] == [{"url": "3.md", "link_type": "document", "target_uri": "docs/3.md"}]


def test_links_of_a_very_long_paragraph_are_found() -> None:
    text = "word [a](b_(c).md) ![i](p.png) " * (MAX_INLINE_CHARACTERS // 20)
    links = links_of(text)
    assert len(links) == 2 * (MAX_INLINE_CHARACTERS // 20)
    assert set(links) == {("b_(c).md", "document"), ("p.png", "image")}
