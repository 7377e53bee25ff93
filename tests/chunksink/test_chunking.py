"""`--chunking v2`: what an edit writes to real engines, and how a folder changes its policy."""

import json

import pytest
from chromadb.api.models.Collection import Collection

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.reader import read_partition
from chunksink.command_line.exits import Exit
from chunksink.ingest.formats.markdown.policy import V2
from tests.chunksink.shell import Models, Shell, write
from tests.ingest.markdown.support import chunks_of

PARTS = 30
PARAGRAPH = " ".join(["Part {0} is about boiling water, for tea is best made with fresh water."] * 5)


def guide(*, changed: int | None = None) -> str:
    """A document with one chunk for each part."""
    parts = [f"## Part {number}\n\n{PARAGRAPH.format(number)}" for number in range(PARTS)]
    if changed is not None:
        parts[changed] += " One more sentence."
    return "\n\n".join(parts)


def records(shell: Shell) -> list[Record]:
    return [record for _, record in read_partition(shell.root, "documents")]


def ids(shell: Shell, sink: str) -> set[str]:
    return {stored.id for stored in shell.stored(sink)}


def test_an_edit_gives_one_chunk_a_new_id_and_sends_one_vector(
    shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shell, "docs/guide.md", guide())
    assert shell("ingest", "docs", "--chunking", "v2", "--sync").code == Exit.OK
    before = {sink: ids(shell, sink) for sink in ("fts", "chroma")}
    assert [len(found) for found in before.values()] == [PARTS, PARTS]
    models.take_texts()
    sent: list[str] = []
    upsert = Collection.upsert

    def counting(collection: Collection, **arguments: object) -> None:
        sent.extend(map(str, arguments["ids"]))  # type: ignore[call-overload]
        upsert(collection, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Collection, "upsert", counting)
    write(shell, "docs/guide.md", guide(changed=12))
    ended = shell("ingest", "docs", "--sync", "--json")
    assert (ended.code, ended.json["sync"]["embeddings"]["computed"]) == (Exit.OK, 1)
    assert [text.startswith("## Part 12\n") for text in models.take_texts()] == [True]
    for sink, old in before.items():
        new = ids(shell, sink)
        assert (len(new - old), len(old - new), len(new)) == (1, 1, PARTS)
    assert set(sent) == ids(shell, "chroma") - before["chroma"], "other chunks are updated without their vectors"
    assert shell("verify", "--deep").code == Exit.OK


def test_renamed_heading_keeps_ids_below_it_but_not_their_vectors(shell: Shell) -> None:
    """The vector depends on the headings as well as on the text."""
    write(shell, "docs/guide.md", "# Guide\n\n## Tea\n\nBoil.\n\n## Cups\n\nWash.")
    assert shell("ingest", "docs", "--chunking", "v2", "--sync").code == Exit.OK
    before = ids(shell, "chroma")
    write(shell, "docs/guide.md", "# Handbook\n\n## Tea\n\nBoil.\n\n## Cups\n\nWash.")
    assert shell("ingest", "docs", "--sync").code == Exit.OK
    assert len(before & ids(shell, "chroma")) == 2
    assert shell("verify", "--deep").code == Exit.OK


def test_changing_the_policy_shows_in_the_plan_and_embeds_only_new_texts(shell: Shell, models: Models) -> None:
    """Sections of one paragraph have the same text under both policies."""
    write(shell, "docs/same.md", guide())
    write(shell, "docs/other.md", "# Tea\n\nRun this:\n\n```\nboil\n```\n")
    assert shell("ingest", "docs", "--sync").code == Exit.OK
    before = {record["text"]: record["chunk_id"] for record in records(shell)}
    models.take_texts()
    assert shell("ingest", "docs", "--chunking", "v2").code == Exit.OK
    plan = shell("plan", "--json").json
    assert (plan["families"]["changed"], plan["embeddings"]["missing"]) == (2, 1)
    after = {record["text"]: record["chunk_id"] for record in records(shell)}
    assert not set(before.values()) & set(after.values())
    assert shell("sync").code == Exit.OK
    assert models.take_texts() == ["# Tea\n\nRun this:\n\n```\nboil\n```"]
    assert sorted(shell.texts("chroma")) == sorted(after)
    assert shell("validate", "--chunking").code == Exit.OK
    assert shell("ingest", "docs", "--chunking", "v1", "--sync").code == Exit.OK
    assert {record["text"]: record["chunk_id"] for record in records(shell)} == before
    assert models.take_texts() == []


def test_older_version_with_the_same_ids_in_another_partition_is_superseded(shell: Shell) -> None:
    before, after = (chunks_of(f"# A\n\nTea.\n\n# B\n\n{words}", policy=V2) for words in ("Coffee.", "Cocoa."))
    assert before[0]["chunk_id"] == after[0]["chunk_id"]
    shell.synced(p1=[before])
    shell.synced(p2=[after])
    for sink in ("fts", "chroma"):
        assert {stored.id for stored in shell.stored(sink)} == {record["chunk_id"] for record in after}
    shell.digests("--deep")
    shell.remove("p1")
    assert shell("retire-partition", "p1").code == Exit.OK
    assert shell("plan", "--json").json["families"]["changed"] == 0


def test_folders_keep_their_policies(shell: Shell) -> None:
    for folder in ("new", "old"):
        write(shell, f"{folder}/a.md", "# Tea\n\nRun this:\n\n```\nboil\n```\n")
    shell("ingest", "new", "--chunking", "v2")
    shell("ingest", "old")
    assert shell("ingest", "new", "old", "--json").json["unchanged"] == 2
    assert [record["source"]["source_uri"] for record in records(shell)] == ["new/a.md", "old/a.md", "old/a.md"]
    roots = json.loads((shell.root.path / "roots.json").read_text())["roots"]
    assert {root["label"]: root["chunking"] for root in roots} == {"new": "v2", "old": "v1"}
    assert shell("validate", "--chunking").code == Exit.OK


def test_unknown_policy_is_a_usage_error(shell: Shell) -> None:
    write(shell, "docs/a.md", "# A")
    assert shell("ingest", "docs", "--chunking", "v3").code == Exit.USAGE
    assert not shell.root.path.exists()
