"""Link artifacts: every link with the source that it leads to."""

import os

import pytest

from tests.ingest.bench import Bench


def target(bench: Bench, text: str, *others: str, name: str = "guide/a.md") -> str | None:
    """The target of the one link in a source, beside others."""
    bench.write(name, text)
    for other in others:
        bench.write(other, f"# {other}\n")
    bench.ingest(base=bench.docs)
    (link,) = [link for link in bench.links() if link["source_uri"] == name]
    documents = {record["provenance"]["source_uri"]: record["document_id"] for record in bench.records()}
    assert link["target_document_id"] == documents.get(link["target_uri"])
    return str(link["target_uri"]) if link["target_document_id"] else None


@pytest.mark.parametrize(
    ("link", "other"),
    [
        ("[b](b.md)", "guide/b.md"),
        ("[b](b.md#part)", "guide/b.md"),
        ("[b](../other/b.md)", "other/b.md"),
        ("[b](b.html)", "guide/b.md"),
        ("[b](b)", "guide/b.md"),
        ("[b](/guide/b)", "guide/b.md"),
        ("[b](sub/)", "guide/sub/README.md"),
        ("[b](sub/index.html)", "guide/sub/README.md"),
        ("[b](My%20note.md)", "guide/My note.md"),
        ("[[b]]", "guide/b.md"),
        ("[[B|shown]]", "elsewhere/deep/b.md"),
    ],
)
def test_link_leads_to_its_source(bench: Bench, link: str, other: str) -> None:
    assert target(bench, f"# A\n\n{link}\n", other) == other


def test_a_link_within_a_source_leads_to_it(bench: Bench) -> None:
    assert target(bench, "# A\n\n[part](#part)\n") == "guide/a.md"


@pytest.mark.parametrize("link", ["[b](nowhere.md)", "[b](../../up.md)", "[b](https://example.org/b)", "[[nowhere]]"])
def test_a_link_to_no_source_has_no_document(bench: Bench, link: str) -> None:
    assert target(bench, f"# A\n\n{link}\n", "guide/b.md") is None


def test_ambiguous_note_has_no_target(bench: Bench) -> None:
    assert target(bench, "# A\n\n[[b]]\n", "x/b.md", "y/b.md") is None


@pytest.mark.parametrize(
    "link",
    [
        "https://example.atlassian.net/wiki/spaces/OPS/pages/12345/On-call",
        "https://example.atlassian.net/wiki/pages/viewpage.action?pageId=12345",
    ],
)
def test_a_page_of_a_confluence_is_found_by_its_number(bench: Bench, link: str) -> None:
    assert target(bench, f"# A\n\n[b]({link})\n", "export/On-call_12345.html") == "export/On-call_12345.html"


def test_a_source_that_is_an_address_is_found_by_it(bench: Bench) -> None:
    bench.write("pages.jsonl", [{"id": "7", "url": "https://example.org/b", "text": "The page."}])
    bench.write("a.md", "# A\n\n[b](https://example.org/b/)\n")
    bench.ingest()
    (link,) = bench.links()
    assert (link["target_uri"], link["link_type"]) == ("https://example.org/b", "external")


def test_links_lead_from_one_partition_to_another(bench: Bench) -> None:
    for number in range(20):
        bench.write(f"{number}.md", f"# {number}\n\n[next]({(number + 1) % 20}.md)\n")
    bench.ingest(partition="by-prefix")
    links = [link for key in bench.bus.partition_keys() for link in bench.links(key)]
    assert len(links) == 20 and all(link["target_document_id"] for link in links)


def test_links_of_partitions_that_are_not_written_are_resolved_with_checksum(bench: Bench) -> None:
    bench.write("a.md", "# A\n\n[b](b.md)\n")
    bench.ingest("a.md", partition="one")
    assert bench.links("one")[0]["target_document_id"] is None
    bench.write("b.md", "# B\n")
    bench.ingest("b.md", partition="two")
    bench.ingest("a.md", partition="one", checksum=True)
    assert bench.links("one")[0]["target_document_id"] is not None


def test_an_artifact_that_is_missing_is_made_again(bench: Bench) -> None:
    bench.write("a.md", "# A\n\n[b](b.md)\n")
    bench.ingest()
    before = bench.files()
    (bench.bus.path / "links" / "documents.jsonl").unlink()
    killed, written_now = (bench.bus.path / "links" / f".documents.{name}.new" for name in ("0123456789abcdef", "f"))
    killed.write_text("of a killed run")
    os.utime(killed, (0, 0))
    written_now.write_text("of a run with another home")
    bench.ingest()
    assert written_now.exists()
    written_now.unlink()
    assert bench.files() == before


def test_chunks_of_others_may_have_anything_under_the_name_links(bench: Bench) -> None:
    bench.write("x.jsonl", [{"page_content": "The cat.", "metadata": {"source": "x", "links": [1, {"url": 2}, "y"]}}])
    bench.ingest()
    assert bench.links() == []
