"""Links between partitions: they lead to what stands in any of those that a run looks at, whatever was written last."""

from typing import Any

import orjson
import pytest

from chunksink.producers.changed import Changed, words_of_link
from chunksink.producers.commits import Commits
from chunksink.producers.links import links_file
from chunksink.producers.markdown.links import classify
from chunksink.producers.tables import open_tables
from chunksink.producers.targets import Targets, names_for
from tests.producers.bench import LATER, NOW, Bench

BY_TYPE = {"kind": "auto", "to": "by-type"}


def leads(bench: Bench) -> dict[tuple[str, str], str | None]:
    """For each link of each source the name of what it leads to, once it is sure that it has the document there."""
    ids = {
        record["provenance"]["source_uri"]: record["document_id"]
        for key in bench.root.partition_keys()
        for record in bench.records(key)
    }
    found = {}
    for key in bench.root.partition_keys():
        for line in map(orjson.loads, links_file(bench.root, key).read_bytes().splitlines()):
            target = line["target_uri"] if line["target_document_id"] else None
            assert line["target_document_id"] == ids.get(target)
            found[line["source_uri"], line["url"]] = target
    return found


def artifacts(bench: Bench) -> dict[str, int]:
    return {path.stem: path.stat().st_ino for path in (bench.root.path / "links").iterdir()}


@pytest.fixture
def parted(bench: Bench) -> Bench:
    """Pages in one partition link to notes in another."""
    bench.write("a.html", '<h1>A</h1><p><a href="b">b</a> <a href="c.html">c</a> <a href="gone.md">gone</a></p>')
    bench.write("b.md", "# B\n\n[a](a) and [[e]]")
    bench.write("c.html", "<h1>C</h1><p>No link.</p>")
    bench.write("d.txt", "D, which is of neither.")
    assert bench.ingest(**BY_TYPE).failed == 0
    assert len(bench.root.partition_keys()) == 3
    return bench


def test_a_link_leads_to_another_partition(parted: Bench) -> None:
    assert leads(parted) == {
        ("a.html", "b"): "b.md",
        ("a.html", "c.html"): "c.html",
        ("a.html", "gone.md"): None,
        ("b.md", "a"): "a.html",
        ("b.md", "[[e]]"): None,
    }


@pytest.mark.parametrize(
    ("name", "source", "url", "target"),
    [
        ("gone.md", "a.html", "gone.md", "gone.md"),
        ("b/index.md", "a.html", "b", "b/index.md"),
        ("deep/er/E.txt", "b.md", "[[e]]", None),
        ("deep/er/E.html", "b.md", "[[e]]", "deep/er/E.html"),
        ("b.md", "a.html", "b", "b.md"),
    ],
)
def test_what_comes_is_what_links_of_partitions_lead_to_that_stay_as_they_are(
    parted: Bench, name: str, source: str, url: str, target: str | None
) -> None:
    parted.write(name, "Something new.")
    assert parted.ingest(**BY_TYPE, now=LATER).processed == 1
    assert leads(parted)[source, url] == target


def test_what_goes_is_led_to_no_more(parted: Bench) -> None:
    (parted.docs / "b.md").unlink()
    parted.ingest(**BY_TYPE, prune=True, now=LATER)
    assert leads(parted) == {("a.html", "b"): None, ("a.html", "c.html"): "c.html", ("a.html", "gone.md"): None}


def test_what_has_another_name_now_is_led_to_by_that_alone(bench: Bench) -> None:
    bench.write("a.html", '<p><a href="x/p.md">p</a></p>')
    bench.write("b.md", "[q](x/q.md)")
    for stamp, name in ((NOW, "x/p.md"), (LATER, "x/q.md")):
        bench.write("rows.jsonl", orjson.dumps({"id": "1", "url": name, "text": "A row has a name of its own."}))
        bench.ingest(**BY_TYPE, now=stamp)
        assert {target for target in leads(bench).values() if target} == {name}


def test_a_note_of_a_name_that_comes_twice_is_no_more_the_only_one(parted: Bench) -> None:
    parted.write("deep/e.html", "E")
    parted.ingest(**BY_TYPE, now=LATER)
    assert leads(parted)["b.md", "[[e]]"] == "deep/e.html"
    parted.write("deeper/e.html", "E, too")
    parted.ingest(**BY_TYPE, now=LATER)
    assert leads(parted)["b.md", "[[e]]"] is None


def test_links_that_stay_true_are_not_written_again(parted: Bench) -> None:
    before = artifacts(parted)
    parted.write("d.txt", "D, otherwise.")
    parted.ingest(**BY_TYPE, now=LATER)
    after = artifacts(parted)
    assert {key for key in before if before[key] != after[key]} == {"txt"}
    assert parted.ingest(**BY_TYPE, now=LATER).links == 0
    assert artifacts(parted) == after


def test_what_moves_to_another_partition_is_what_it_was(parted: Bench) -> None:
    before = leads(parted)
    parted.ingest(kind="auto", to="by-prefix", now=LATER)
    assert leads(parted) == before


@pytest.mark.promise(2)
def test_a_run_that_ends_early_leaves_no_links_that_are_untrue(parted: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (parted.docs / "b.md").unlink()

    def killed(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("chunksink.producers.links.write_links", killed)
        with pytest.raises(KeyboardInterrupt):
            parted.ingest(**BY_TYPE, prune=True, now=LATER)
    assert list(artifacts(parted)) == ["txt"]
    assert parted.ingest(**BY_TYPE, prune=True, now=LATER).written is False
    assert leads(parted)["a.html", "b"] is None


@pytest.mark.promise(2)
def test_a_run_that_ends_between_two_partitions_leaves_no_links_that_are_untrue(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of one that was still to be written, and then needs no more to be."""
    bench.write("a.html", "<p>A</p>")
    bench.write("b.md", "[a](a.html)")
    bench.ingest(**BY_TYPE)
    real, written = Commits._write, list[str]()

    def write(commits: Commits, key: str, *given: Any, **said: Any) -> Any:
        if written:
            raise KeyboardInterrupt
        written.append(key)
        return real(commits, key, *given, **said)

    bench.write("a.html", "<p>Another A</p>")
    bench.write("b.md", "[a](a.html) and more")
    with monkeypatch.context() as patch:
        patch.setattr(Commits, "_write", write)
        with pytest.raises(KeyboardInterrupt):
            bench.ingest(**BY_TYPE, now=LATER)
    assert written == ["html"]
    bench.write("b.md", "[a](a.html)")
    assert not bench.ingest(**BY_TYPE, now=LATER).written
    assert leads(bench) == {("b.md", "a.html"): "a.html"}


def test_links_that_another_run_made_untrue_meanwhile_are_left_to_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("one/a.md", "# A\n\n[b](../two/b.md)")
    bench.write("two/b.md", "# B")
    bench.ingest([bench.docs / "two"], to="two")
    real = Targets.__init__

    def look(*given: Any) -> None:
        real(*given)
        monkeypatch.setattr(Targets, "__init__", real)
        bench.write("two/b.md", "# Another B")
        bench.ingest([bench.docs / "two"], to="two", now=LATER)

    monkeypatch.setattr(Targets, "__init__", look)
    bench.ingest([bench.docs / "one"], to="one")
    assert not links_file(bench.root, "one").exists()
    bench.ingest([bench.docs / "one"], to="one", now=LATER)
    assert leads(bench) == {("one/a.md", "../two/b.md"): "two/b.md"}


def test_of_versions_in_several_partitions_links_lead_to_the_one_that_counts(bench: Bench) -> None:
    bench.write("a.md", "[b](b.md)")
    for number, key in enumerate(("p3", "p1", "p4", "p2"), start=1):
        bench.write("b.md", f"# B {number}")
        bench.ingest([bench.docs / "b.md"], to=key, now=f"2026-03-0{number}T12:00:00.000000Z")
    bench.ingest([bench.docs / "a.md"], to="zz", now="2026-03-09T12:00:00.000000Z")
    (line,) = links_file(bench.root, "zz").read_bytes().splitlines()
    (newest,) = [record for record in bench.records("p2") if record["provenance"]["source_uri"] == "b.md"]
    assert orjson.loads(line)["target_document_id"] == newest["document_id"]


@pytest.mark.parametrize(
    "odd",
    [
        b"{}\n",
        b"[1]\n",
        b"half",
        b'{"tenant_id":null}\n',
        b'{"tenant_id":["x"],"source_uri":"a","url":"b","link_type":"document","target_uri":"b"}\n',
        b'{"tenant_id":null,"source_uri":"a","url":5,"link_type":"document","target_uri":"b"}\n',
    ],
)
def test_an_artifact_that_is_not_as_we_write_them_is_made_again(parted: Bench, odd: bytes) -> None:
    links_file(parted.root, "html").write_bytes(odd)
    parted.write("d.txt", "D, otherwise.")
    parted.ingest(**BY_TYPE, now=LATER)
    assert leads(parted)["a.html", "b"] == "b.md"


@pytest.mark.parametrize("forgets", [False, True])
def test_links_lead_to_partitions_that_a_run_leaves_alone(bench: Bench, forgets: bool) -> None:
    bench.write("one/a.md", "# A\n\n[b](../two/b.md) [[c]]")
    b = bench.write("two/b.md", "# B\n\n[a](../one/a.md)")
    bench.ingest([bench.docs / "one"], to="one")
    bench.ingest([bench.docs / "two"], to="two")
    expected: dict[tuple[str, str], str | None] = {
        ("one/a.md", "../two/b.md"): "two/b.md",
        ("one/a.md", "[[c]]"): None,
        ("two/b.md", "../one/a.md"): "one/a.md",
    }
    assert leads(bench) == expected
    if forgets:
        bench.forget()
    bench.write("two/c.md", "# C")
    b.write_text("# B, otherwise\n\n[a](../one/a.md)")
    assert bench.ingest([bench.docs / "two"], to="two", now=LATER).links == 3
    assert leads(bench) == expected | {("one/a.md", "[[c]]"): "two/c.md"}
    b.unlink()
    bench.ingest([bench.docs / "two"], to="two", now=LATER, prune=True)
    assert leads(bench) == {("one/a.md", "../two/b.md"): None, ("one/a.md", "[[c]]"): "two/c.md"}


@pytest.mark.parametrize("broken", [b"{", b"[1]\n", b"5\n", b'{"document_id":"x","provenance":[],"text":""}\n', None])
def test_a_partition_of_others_that_is_not_valid_is_in_nobodys_way(bench: Bench, broken: bytes | None) -> None:
    bench.write("one/a.md", "# A\n\n[b](../two/b.md)")
    bench.write("two/b.md", "# B")
    bench.ingest([bench.docs / "one"], to="one")
    chunks = bench.root.chunks_file("one")
    chunks.unlink()
    if broken is None:
        chunks.mkdir()
    else:
        chunks.write_bytes(broken)
    assert bench.ingest([bench.docs / "two"], to="two", now=LATER).processed == 1
    assert links_file(bench.root, "two").exists()


def test_tenants_have_their_own(bench: Bench) -> None:
    bench.write("a.html", '<p><a href="b.md">b</a></p>')
    bench.write("b.md", "# B")
    bench.ingest([bench.docs / "a.html"], **BY_TYPE, tenant="one")
    bench.ingest([bench.docs / "b.md"], **BY_TYPE, tenant="two", now=LATER)
    assert leads(bench)["a.html", "b.md"] is None
    bench.ingest([bench.docs / "b.md"], **BY_TYPE, tenant="one", now=LATER)
    (line,) = links_file(bench.root, "html").read_bytes().splitlines()
    (own,) = [record for record in bench.records("md") if record.get("tenant_id") == "one"]
    assert orjson.loads(line)["target_document_id"] == own["document_id"]


def test_no_link_that_is_concerned_is_passed_over() -> None:
    """Whatever an address may lead to ends with one of the words by which most links are passed over."""
    ends = ["b", "b.md", "b.html", "b.x", "index.html", "index.md", "README.md", "b c.md", "b%20c.md", "..", ".", ""]
    folders, marks = ("", "d/", "/", "../"), ("", "/", "#p", "?q")
    urls = [f"{folder}{end}{mark}" for folder in folders for end in ends for mark in marks]
    tables = open_tables()
    for source in ("s/d/a.md", "https://x.example/s/a?id=1"):
        for url in urls:
            for name in names_for(source, url, "document", None):
                if "/." in name:
                    continue  # nothing but a suffix
                tables.execute("delete from arrivals")
                row = ("p", name, name, "d", None, None, None, "[]", 1, "[]", None, None, None, None)
                tables.execute(f"insert into arrivals values ({', '.join('?' * len(row))})", row)
                assert Changed(tables).concerns(None, source, url, "document", None), (url, name)
    assert set(words_of_link(None, "x/b.md#p", "document", None)) == {"b.md", "b"}
    pages = [
        "https://x.example/wiki/spaces/ENG/pages/12346/Page+Two",
        "https://x.example/a/b/",
        "e/Page-Two_12346.html",
    ]
    urls = [*pages[:2], "https://x.example/a/b?c#d", "/pages/viewpage.action?pageId=12346"]
    urls += ["https://wiki.x.example/display/ENG/Page+Two", "/pages/viewpage.action?title=Page%20Two"]
    urls += ["https://x.example/a/b"]
    concerned = set()
    for page in pages:
        tables.execute("delete from arrivals")
        row = ("p", page, page, "d", None, None, None, "[]", 1, "[]", None, None, None, None)
        tables.execute(f"insert into arrivals values ({', '.join('?' * len(row))})", row)
        changed = Changed(tables)
        concerned |= {(page, url) for url in urls if changed.concerns(None, pages[0], url, classify(url), None)}
    assert concerned == {
        *((pages[0], url) for url in (pages[0], *urls[3:6])),
        *((pages[1], url) for url in (pages[1], urls[6])),
        *((pages[2], url) for url in (pages[0], *urls[3:6])),
    }
