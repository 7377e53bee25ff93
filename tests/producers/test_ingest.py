"""From files to a partition: what is written, refused, reported."""

from dataclasses import FrozenInstanceError
from functools import partial
from pathlib import Path

import orjson
import pytest

from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.chunkbus.errors import PartitionLocked
from chunksink.chunkbus.manifest import ManifestProducer, Tombstone
from chunksink.chunkbus.writer import PartitionWriter
from chunksink.producers.errors import IngestRefused
from chunksink.producers.links import drop_links, links_file
from chunksink.producers.markdown import MarkdownChunker
from chunksink.producers.report import Outcome, Progress
from tests.producers.bench import LATER, NOW, Bench


def test_a_folder_becomes_a_valid_partition_in_the_order_of_names(bench: Bench) -> None:
    bench.write("b.md", "# B\n\ntext of b")
    bench.write("a/z.MD", "# Z\n")
    bench.write("a.markdown", "# A\n\n" + "A sentence. " * 400)
    bench.write("notes.txt", "not Markdown")
    bench.write(".hidden/x.md", "# hidden")
    bench.write(".x.md", "# hidden")
    report = bench.ingest(tenant="acme")
    bench.assert_valid()
    uris = list(dict.fromkeys(record["provenance"]["source_uri"] for record in bench.records()))
    assert uris == ["a.markdown", "a/z.MD", "b.md"]
    assert {record["tenant_id"] for record in bench.records()} == {"acme"}
    assert (report.sources, report.processed, report.documents, report.written) == (3, 3, 3, True)
    assert report.chunks == len(bench.records()) == bench.manifest().counts.chunks_emitted > 3
    assert [attempt["status"] for attempt in bench.attempts(run_id="run")] == ["processed"] * 3
    with pytest.raises(FrozenInstanceError):
        report.sources = 4  # type: ignore[misc]


def test_the_manifest_says_what_was_read_and_how(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.ingest()
    manifest = bench.manifest()
    record = bench.records()[0]
    assert manifest.created_at == record["created_at"] == NOW
    assert manifest.chunking_policy_id == MarkdownChunker().policy_id
    assert manifest.input_sources == [
        {"source_uri": "a.md", "source_checksum": record["provenance"]["source_checksum"]}
    ]
    assert manifest.canonicalization_versions == [f"chunksink-markdown: {MarkdownChunker().policy_id}"]
    assert record["producer"] == {"name": "chunksink-ingest", "version": manifest.producer.version, "run_id": "run"}


def test_no_sources_make_an_empty_valid_partition(bench: Bench) -> None:
    report = bench.ingest()
    bench.assert_valid()
    assert report.written
    assert bench.records() == []
    assert not bench.ingest(now=LATER).written


def test_two_runs_are_byte_identical_but_for_times_and_run_ids(bench: Bench, tmp_path: Path) -> None:
    for number in range(8):
        bench.write(f"{number}.md", f"# {number}\n\n[next]({number + 1}.md) " + "Some words stand here. " * 300)
    bench.ingest()
    (tmp_path / "again").mkdir()
    again = Bench(tmp_path / "again")
    again.ingest(paths=[bench.docs], base=bench.docs)
    assert again.bytes_on_bus() == bench.bytes_on_bus()
    assert len(bench.bytes_on_bus()) == 3
    (tmp_path / "later").mkdir()
    later = Bench(tmp_path / "later")
    later.ingest(paths=[bench.docs], base=bench.docs, now=LATER, run_id="other")
    assert [stable(record) for record in later.records()] == [stable(record) for record in bench.records()]


def stable(record: Record) -> Record:
    """The record without time, run id, and the hash over them."""
    producer = {key: value for key, value in record["producer"].items() if key != "run_id"}
    hashes = {"text_hash": record["hashes"]["text_hash"]}
    return {**record, "created_at": None, "producer": producer, "hashes": hashes}


def test_families_and_tombstones_of_others_are_carried_over(bench: Bench) -> None:
    foreign = new_chunk(
        document_id="d",
        text="from elsewhere",
        provenance={
            "source_ref": "mail:1",
            "parser_name": "p",
            "parser_version": "1",
            "canonicalizer": {"canonicalizer_name": "c", "canonicalizer_version": "1"},
            "inputs": [],
        },
        span_key=0,
        created_at=NOW,
        fields={"unknown_field": {"kept": [1, 2.5]}},
    )
    tombstone = Tombstone(parent_id="0" * 64, reason="withdrawn", at=NOW)
    with PartitionWriter(bench.root, "markdown") as writer:
        writer.add(foreign)
        writer.commit(documents=1, producer=ManifestProducer("other", "1"), created_at=NOW, tombstones=[tombstone])
    bench.write("a.md", "# A")
    bench.ingest(now=LATER)
    assert foreign in bench.records()
    assert bench.texts("a.md") == ["# A"]
    assert bench.manifest().tombstones == [tombstone]
    assert bench.manifest().counts.documents == 2


def test_what_says_no_age_grows_no_younger_where_it_is_carried_over(bench: Bench) -> None:
    """A chunk and a tombstone have the age of their manifest, which is younger after every ingest."""
    ageless = new_chunk(
        text="old words",
        document_id="d" * 64,
        provenance={
            "source_uri": "two/k.md",
            "source_checksum": "sha256:" + "0" * 64,
            "parser_name": "p",
            "parser_version": "1",
            "canonicalizer_name": "c",
            "canonicalizer_version": "1",
            "inputs": [],
        },
        span_key=0,
        created_at=NOW,
    )
    del ageless["created_at"], ageless["hashes"]["chunk_object_hash"]
    with PartitionWriter(bench.root, "markdown") as writer:
        writer.add(ageless)
        withdrawn = Tombstone(parent_id="0" * 64, reason="withdrawn")
        writer.commit(documents=1, producer=ManifestProducer("other", "1"), created_at=NOW, tombstones=[withdrawn])
    bench.write("a.md", "# A")
    bench.ingest(now=LATER)
    assert {**ageless, "created_at": NOW} in bench.records()
    assert bench.manifest().tombstones == [Tombstone(parent_id="0" * 64, reason="withdrawn", at=NOW)]
    bench.write("a.md", "# A again")
    bench.ingest(now=LATER)
    assert {**ageless, "created_at": NOW} in bench.records()
    assert bench.manifest().tombstones[0].at == NOW
    bench.assert_valid()


def test_two_tenants_share_a_partition_without_touching_each_other(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.ingest(tenant="one")
    bench.ingest(tenant="two")
    bench.write("a.md", "# A2")
    bench.ingest(tenant="two", now=LATER)
    assert [(record["tenant_id"], record["text"]) for record in bench.records()] == [("one", "# A"), ("two", "# A2")]
    bench.assert_valid()


@pytest.mark.promise(11)
def test_sources_of_others_are_counted_where_they_were_read_from_the_same_place(bench: Bench) -> None:
    bench.write("a/x.md", "# A")
    bench.write("other/a/x.md", "# Another")
    alone, folder, namesake = bench.docs / "a" / "x.md", bench.docs / "a", bench.docs / "other" / "a"
    assert bench.ingest([folder], base=None, tenant="one").of_others == {}
    assert bench.ingest([namesake], base=None, tenant="two").of_others == {}, "only the name of the folder is the same"
    assert bench.ingest([folder], base=None, now=LATER).of_others == {"one": 1}
    assert bench.ingest([alone], base=bench.docs, now=LATER).of_others == {"one": 1}
    bench.write("a/x.md.md", "# A")
    bench.ingest([folder], base=None, tenant="one", now=LATER)
    assert bench.ingest([alone], base=bench.docs, now=LATER).of_others == {"one": 1}, "of that file alone"


@pytest.mark.parametrize("tenant", ["", "default"])
def test_a_tenant_that_is_as_good_as_none_is_refused(bench: Bench, tenant: str) -> None:
    bench.write("a.md", "# A")
    with pytest.raises(IngestRefused, match=r"--tenant"):
        bench.ingest(tenant=tenant)
    assert not bench.root.path.exists()


def test_a_broken_partition_is_refused_and_left_as_it_is(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.ingest()
    chunks = bench.root.chunks_file("markdown")
    chunks.write_bytes(chunks.read_bytes()[:-20])
    before = bench.bytes_on_bus()
    bench.write("a.md", "# A2")
    with pytest.raises(IngestRefused, match=r"partition markdown .* is not valid.*SCHEMA_INVALID:json_parse"):
        bench.ingest()
    assert bench.bytes_on_bus() == before


def test_two_writers_of_one_partition_do_not_mix(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("a.md", "# A")
    monkeypatch.setattr("chunksink.producers.commits.PartitionWriter", partial(PartitionWriter, lock_seconds=0.05))
    with PartitionWriter(bench.root, "markdown"), pytest.raises(PartitionLocked):
        bench.ingest()


def test_progress_names_every_source_and_how_it_went(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.ingest()
    bench.write("b.md", b"\xff")
    bench.write("c.md", " ")
    bench.write("d.md", "# D")
    seen: list[Progress] = []
    bench.ingest(on_progress=seen.append)
    assert [(step.done, step.total, step.source_uri, step.outcome) for step in seen] == [
        (1, 4, "a.md", Outcome.UNCHANGED),
        (2, 4, "b.md", Outcome.FAILED),
        (3, 4, "c.md", Outcome.EMPTY),
        (4, 4, "d.md", Outcome.PROCESSED),
    ]


def test_links_are_written_with_their_targets_resolved(bench: Bench) -> None:
    bench.write("docs/a.md", "[b](../b.md) [gone](gone.md) [wiki](https://x.atlassian.net/wiki/spaces/A/pages/1)")
    bench.write("b.md", "# B")
    report = bench.ingest()
    lines = [orjson.loads(line) for line in links_file(bench.root, "markdown").read_bytes().splitlines()]
    ids = {record["provenance"]["source_uri"]: record["document_id"] for record in bench.records()}
    assert report.links == 3
    assert [(line["url"], line["link_type"], line["target_document_id"]) for line in lines] == [
        ("../b.md", "document", ids["b.md"]),
        ("gone.md", "document", None),
        ("https://x.atlassian.net/wiki/spaces/A/pages/1", "confluence", None),
    ]
    assert {line["source_document_id"] for line in lines} == {ids["docs/a.md"]}
    links_file(bench.root, "markdown").unlink()
    assert bench.ingest().links == 3, "a lost artifact is made again from the chunks"


def test_links_that_another_run_drops_while_they_are_written_are_its_own(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a.md", "# A\n\n[b](b.md)")
    with monkeypatch.context() as patch:
        patch.setattr("chunksink.producers.links.os.fsync", lambda _file: drop_links(bench.root, ["markdown"]))
        assert bench.ingest().failures == ()
    assert not links_file(bench.root, "markdown").exists()
    bench.ingest()
    assert links_file(bench.root, "markdown").exists()


def test_what_a_killed_run_left_of_links_goes_with_the_next_version(bench: Bench) -> None:
    bench.write("a.md", "# A\n\n[b](b.md)")
    bench.ingest()
    path = links_file(bench.root, "markdown")
    left, of_another = (path.with_name(f".{key}.{'0' * 16}.new") for key in ("markdown", "markdown.x"))
    left.write_bytes(b"half")
    of_another.write_bytes(b"half")
    bench.write("a.md", "# A\n\n[c](c.md)")
    bench.ingest(now=LATER)
    assert sorted(path.parent.iterdir()) == [of_another, path]
    left.write_bytes(b"half")
    path.unlink()
    bench.ingest(now=LATER)
    assert sorted(path.parent.iterdir()) == [of_another, path]


def test_links_that_somebody_changed_are_made_anew_where_every_file_is_read(bench: Bench) -> None:
    bench.write("a.md", "# A\n\n[b](b.md)")
    bench.ingest()
    path = links_file(bench.root, "markdown")
    before = path.read_bytes()
    path.write_bytes(b"")
    assert not bench.ingest(every_file=True).written
    assert path.read_bytes() == before
