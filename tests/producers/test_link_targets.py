"""Links of a site, a book, a documentation are resolved to the source that they lead to, where that was ingested."""

import orjson
import pytest

from chunksink.producers.links import links_file
from tests.producers.bench import Bench
from tests.producers.bridges.samples import canonical_chunk


def resolved(bench: Bench, *names: str, source: str, url: str) -> tuple[str | None, bool]:
    """The name of the target, and whether it has the document of that name."""
    for name in names:
        bench.write(name, f"# {name}")
    bench.write(source, f"See [it](<{url}>).")
    report = bench.ingest(kind="auto")
    assert report.failed == 0
    ids = {record["provenance"]["source_uri"]: record["document_id"] for record in bench.records()}
    lines = [orjson.loads(line) for line in links_file(bench.root, "markdown").read_bytes().splitlines()]
    (link,) = [line for line in lines if line["source_uri"] == source]
    assert link["url"] == url
    assert link["target_document_id"] == ids.get(link["target_uri"])
    return link["target_uri"], link["target_document_id"] is not None


@pytest.mark.parametrize("page", ["index.html", "index.md", "README.md"])
@pytest.mark.parametrize("url", ["install/", "install", "./install/#req", "../site/install/", "/install/?x#req"])
def test_the_address_of_a_folder_leads_to_its_page(bench: Bench, page: str, url: str) -> None:
    assert resolved(bench, f"site/install/{page}", source="site/a.md", url=url) == (f"site/install/{page}", True)


@pytest.mark.parametrize(
    ("there", "source", "url"),
    [
        ("site/index.html", "site/sub/a.md", "../"),
        ("site/sub/index.md", "site/sub/a.md", "."),
        ("index.md", "sub/a.md", ".."),
        ("site/index.md", "site/sub/a.md", "/"),
        ("site/guide.html", "site/sub/deep/a.md", "/guide.html"),
        ("guide.html", "site/sub/a.md", "/guide.html"),
        ("site/src/content/learn/b.md", "site/src/content/reference/a.md", "/learn/b#part"),
        ("site/src/content/b.md", "site/src/content/a.md", "/b.md"),
        ("site/install.md", "site/a.md", "install/"),
        ("site/b.md", "site/a.md", "./b"),
        ("site/b.mdx", "site/a.md", "./b#part"),
        ("site/b.html", "site/a.md", "b"),
        ("book/b.md", "book/a.md", "b.html#part"),
        ("book/README.md", "book/sub/a.md", "../index.html"),
        ("book/b.md", "book/a.md", " b.md "),
        ("book/b c.md", "book/a.md", "b%20c.html"),
    ],
)
def test_what_addresses_stand_for(bench: Bench, there: str, source: str, url: str) -> None:
    assert resolved(bench, there, source=source, url=url) == (there, True)


@pytest.mark.parametrize(
    ("names", "url", "expected"),
    [
        (("s/b.html", "s/b.md"), "b.html", "s/b.html"),
        (("s/b.txt", "s/b.txt.md"), "b.txt", "s/b.txt"),
        (("s/b/index.md", "s/b.md"), "b", "s/b/index.md"),
        (("s/guide.md", "guide.md"), "/guide.md", "s/guide.md"),
        (("s/guide.md", "guide.html"), "/guide.html", "s/guide.md"),
        (("s/t/guide.md", "s/t/u/guide.md"), "/guide.md", "s/t/guide.md"),
        (("guide.md", "s/t/guide.md"), "/guide.md", "guide.md"),
    ],
)
def test_the_name_itself_comes_first(bench: Bench, names: tuple[str, ...], url: str, expected: str) -> None:
    source = "s/t/u/a.md" if "s/t/guide.md" in names else "s/a.md"
    assert resolved(bench, *names, source=source, url=url) == (expected, True)


@pytest.mark.parametrize(
    ("url", "target"),
    [("c.html", "s/c.html"), ("/c", "s/c"), ("c/", "s/c"), ("../../c.md", None), ("https://a.example/b", None)],
)
def test_what_is_not_there_is_named_as_it_would_be(bench: Bench, url: str, target: str | None) -> None:
    assert resolved(bench, "s/b.md", source="s/a.md", url=url) == (target, False)


@pytest.mark.parametrize(
    ("names", "url", "target"),
    [
        (("v/deep/er/Setup.md", "v/Other.md"), "[[setup#Part|shown]]", "v/deep/er/Setup.md"),
        (("v/b/Setup.md", "v/c/Setup.md"), "[[Setup]]", None),
        (("v/b/Setup.md", "v/c/Setup.md"), "[[c/Setup]]", "v/c/Setup.md"),
        (("v/b/Setup.md", "v/a/Setup.md"), "[[Setup]]", "v/a/Setup.md"),
        (("v/b/Meeting 1.2.md",), "[[Meeting 1.2]]", "v/b/Meeting 1.2.md"),
        (("v/b/Setup.html",), "[[Setup.html]]", "v/b/Setup.html"),
        (("v/b/Gru\u0308n.md",), "[[grün]]", "v/b/Gru\u0308n.md"),
    ],
)
def test_a_link_in_double_brackets_leads_to_the_only_note_of_that_name(
    bench: Bench, names: tuple[str, ...], url: str, target: str | None
) -> None:
    for name in names:
        bench.write(name, f"# {name}\n\n{'Many words. ' * 400}")
    bench.write("v/a/a.md", f"See {url} and [it](Other).")
    assert bench.ingest(kind="auto").failed == 0
    links = [orjson.loads(line) for line in links_file(bench.root, "markdown").read_bytes().splitlines()]
    wiki, plain = sorted(links, key=lambda link: str(link["url"]) == "Other")
    assert (wiki["target_uri"] if wiki["target_document_id"] else None) == target
    assert plain["target_document_id"] is None, "what is no link by name does not lead by name"


@pytest.mark.parametrize(
    "links", ["b.md", ["b.md"], [{"url": "b.md"}], [{"url": 1, "link_type": "document"}], {"a": 1}]
)
def test_what_chunks_of_others_call_links_is_theirs(bench: Bench, links: object) -> None:
    bench.write("r.jsonl", orjson.dumps(canonical_chunk(metadata={"links": links})))
    assert bench.ingest(kind="chunks").documents == 1
    assert links_file(bench.root, "markdown").read_bytes() == b""
