"""Links to addresses of the web, of a Confluence above all, lead to the sources that were read from there."""

from typing import Any

import orjson
import pytest

from chunksink.producers.links import links_file
from tests.producers.bench import LATER, Bench
from tests.producers.bridges.samples import canonical_chunk

CLOUD = "https://acme.atlassian.net/wiki"
ONE, TWO = f"{CLOUD}/spaces/ENG/pages/12345/Page+One", f"{CLOUD}/spaces/ENG/pages/12346/Page+Two"


def row(url: str | None, html: str, **more: Any) -> dict[str, Any]:
    return {"title": "Page", "html": html, **({"url": url} if url else {}), **more}


def put(bench: Bench, *rows: dict[str, Any], name: str = "pages.jsonl") -> None:
    bench.write(name, "".join(orjson.dumps(one).decode() + "\n" for one in rows))


def leads(bench: Bench, source: str) -> list[tuple[str, str | None]]:
    """Where the links of a source lead, by their addresses."""
    ids = {record["provenance"]["source_uri"]: record["document_id"] for record in bench.records()}
    lines = map(orjson.loads, links_file(bench.root, "markdown").read_bytes().splitlines())
    found = [line for line in lines if line["source_uri"] == source]
    assert all(line["target_document_id"] == ids.get(line["target_uri"]) for line in found)
    return [(line["url"], line["target_uri"]) for line in found]


@pytest.mark.parametrize(
    "url",
    [
        TWO,
        f"{TWO}/",
        f"{TWO}#part",
        f"{TWO}?focusedCommentId=7",
        f"{CLOUD}/spaces/ENG/pages/12346",
        "/wiki/spaces/ENG/pages/12346/Another+name",
        f"{CLOUD}/pages/viewpage.action?pageId=12346",
        f"{CLOUD}/display/ENG/Page+Two",
        "https://confluence.acme.example/display/eng/page%20two",
        "/pages/viewpage.action?spaceKey=ENG&title=Page+Two",
        "/pages/viewpage.action?title=Page+Two",
    ],
)
def test_a_page_is_known_by_its_address_number_or_title(bench: Bench, url: str) -> None:
    put(bench, row(ONE, f'<p>See <a href="{url}">it</a>.</p>'), row(TWO, "<p>Two.</p>"), row(None, "<p>x</p>", id="7"))
    bench.ingest(kind="auto")
    assert leads(bench, ONE) == [(url, TWO)]


@pytest.mark.parametrize(
    "url",
    [
        f"{CLOUD}/spaces/ENG/pages/99999/Page+Two",
        f"{CLOUD}/pages/viewpage.action?pageId=99999",
        f"{CLOUD}/display/OPS/Page+Two",
        f"{CLOUD}/display/ENG/Page+Three",
        f"{CLOUD}/spaces/ENG/overview",
        f"{CLOUD}/x/AbC",
        "https://[acme.atlassian.net/wiki",
    ],
)
def test_what_was_not_read_is_led_to_by_no_link(bench: Bench, url: str) -> None:
    put(bench, row(ONE, f'<p>See <a href="{url}">it</a>.</p>'), row(TWO, "<p>Two.</p>"))
    bench.ingest(kind="auto")
    assert [target for _, target in leads(bench, ONE)] == [None]


def test_the_files_of_an_export_are_pages(bench: Bench) -> None:
    linked = '<ac:link><ri:page ri:content-title="Page Two" ri:space-key="ENG"/></ac:link>'
    by_number = f'<a href="{CLOUD}/pages/viewpage.action?pageId=12346">by number</a>'
    bench.write("ENG/Page-One_12345.html", f"<html><body><p>See {linked}, {by_number}.</p></body></html>")
    bench.write("ENG/Page-Two_12346.html", "<html><body><p>Two.</p></body></html>")
    bench.ingest(kind="auto")
    assert [target for _, target in leads(bench, "ENG/Page-One_12345.html")] == ["ENG/Page-Two_12346.html"] * 2


def test_rows_are_pages_by_their_ids(bench: Bench) -> None:
    put(bench, row(None, f'<p><a href="{TWO}">it</a></p>', id="12345"), row(None, "<p>Two.</p>", id="12346"))
    bench.ingest(kind="auto")
    assert leads(bench, "pages.jsonl#id=12345") == [(TWO, "pages.jsonl#id=12346")]


def test_of_two_pages_that_are_called_so_nobody_knows_which_is_meant(bench: Bench) -> None:
    url = f"{CLOUD}/display/ENG/Page+Two"
    put(bench, row(ONE, f'<p><a href="{url}">it</a></p>'), row(TWO, "<p>Two.</p>"))
    other = TWO.replace("12346", "12399")
    put(bench, row(other, "<p>Two as well.</p>"), name="more.jsonl")
    bench.ingest(kind="auto")
    assert leads(bench, ONE) == [(url, None)]
    put(bench, row(other.replace("Two", "Three"), "<p>Three.</p>"), name="more.jsonl")
    bench.ingest(kind="auto", prune=True, now=LATER)
    assert leads(bench, ONE) == [(url, TWO)], "told by the run that takes the other away"


def test_files_that_are_called_like_pages_are_none(bench: Bench) -> None:
    bench.write("a.md", f"[it]({CLOUD}/pages/viewpage.action?pageId=12345) and [[Page 12345]].")
    bench.write("n/Page 12345.md", "# Note")
    bench.ingest(kind="auto")
    note = "n/Page 12345.md"
    assert [target for _, target in leads(bench, "a.md")] == [None, note]
    bench.write("e/Thing_12345.html", "<p>Page.</p>")
    bench.ingest(kind="auto", now=LATER)
    assert [target for _, target in leads(bench, "a.md")] == ["e/Thing_12345.html", note]


def test_what_a_chunk_says_that_its_link_leads_to_counts(bench: Bench) -> None:
    link = {"url": "https://x.example/", "link_type": "external", "target_uri": "b.md"}
    bench.write("b.md", "# B")
    bench.write("c.jsonl", orjson.dumps(canonical_chunk(metadata={"links": [link]})).decode() + "\n")
    bench.ingest(kind="auto")
    (line,) = map(orjson.loads, links_file(bench.root, "markdown").read_bytes().splitlines())
    assert (line["target_uri"], line["target_document_id"] is not None) == ("b.md", True)


@pytest.mark.parametrize("url", ["https://a.example/b", "https://a.example/b/", "https://a.example/b#c"])
def test_any_address_of_the_web_leads_to_its_source(bench: Bench, url: str) -> None:
    bench.write("a.md", f"See [it]({url}) and https://a.example/other.")
    put(bench, row("https://a.example/b", "<p>Words.</p>"))
    bench.ingest(kind="auto")
    assert leads(bench, "a.md") == [(url, "https://a.example/b"), ("https://a.example/other", None)]
    (bench.docs / "pages.jsonl").unlink()
    bench.ingest(kind="auto", prune=True, allow_deletions=1, now=LATER)
    assert [target for _, target in leads(bench, "a.md")] == [None, None]
