"""What the Chroma sink promises beyond the suite: strangers' rows, limits, faults, other processes."""

import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chromadb
import httpx
import msgspec
import numpy as np
import pytest
from chromadb.config import Settings

import sinks.chroma.sink as chroma_sink
from settings.config import ConfigError
from sinks.chroma import ChromaBuild, ChromaSink, open_sink, rows
from sinks.chroma.clients import Server
from sinks.conformance.samples import DIMENSIONS, family, held, marker, records, vector, wanted
from sinks.document import Family
from sinks.errors import BuildMissing, NotConfirmed, Transient, Unreachable, WrongKey, WrongShape
from sinks.projection import project_family
from sinks.reader import Filter
from sinks.sink import NO_PARENT, Build, Marker, Sink
from tests.engines.servers import ChromaServer

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def sink(tmp_path: Path) -> ChromaSink:
    return ChromaSink.embedded(tmp_path / "chroma")


@pytest.fixture
def signed() -> Marker:
    return marker()


@pytest.fixture
def build(sink: ChromaSink, signed: Marker) -> Iterator[ChromaBuild]:
    build = sink.create(signed, DIMENSIONS)
    yield build
    build.close()


def folder(tmp_path: Path, signed: Marker) -> Path:
    return tmp_path / "chroma" / signed.build_id


# --- what is stored -------------------------------------------------------------------------------------------


def test_other_programs_can_read_it(build: ChromaBuild, tmp_path: Path, signed: Marker) -> None:
    build.replace([family("a", ["hello"], metadata={"tags": ["x", "y"], "year": 2001})])
    build.close()
    client = chromadb.PersistentClient(str(folder(tmp_path, signed)), settings=Settings(anonymized_telemetry=False))
    where: Any = {"tags": {"$contains": "x"}}
    found = client.get_collection("chunks", embedding_function=None).get(where=where)
    assert found["documents"] == ["hello"]
    assert found["metadatas"] is not None
    assert found["metadatas"][0]["year"] == 2001
    assert not [value for value in found["metadatas"][0].values() if value is None]


def test_without_text_nothing_of_it_is_stored(tmp_path: Path, signed: Marker) -> None:
    sink = ChromaSink.embedded(tmp_path / "chroma", store_text=False)
    build = sink.create(signed, DIMENSIONS)
    one = family("a", ["a secret phrase", "another"])
    build.replace([one])
    assert build.flush() == []
    assert held(build) == wanted([one])
    assert held(build, content=True) == wanted([one]), "hashes that cannot be computed again are those that are stored"
    build.close()
    assert not any(b"secret phrase" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    reader = sink.reader(signed.build_id)
    assert reader.query(vector("another"), 1)[0].id == one.documents[1].id
    assert [document.text for document in reader.get([one.documents[0].id])] == [""]
    reader.close()


def test_a_changed_text_is_seen_by_a_scan_of_the_content(build: ChromaBuild) -> None:
    one = family("a", ["one", "two"])
    build.replace([one])
    build._collection.update(ids=[one.documents[0].id], documents=["tampered"], embeddings=np.stack([vector("one")]))
    assert held(build) == wanted([one])
    assert len(set(held(build, content=True)) & set(wanted([one]))) == 1


def test_rows_of_strangers_are_seen_and_can_go(build: ChromaBuild) -> None:
    mine, other = family("a", ["mine"]), family("b", ["kept"])
    build.replace([mine, other])
    vectors = np.ones((3, DIMENSIONS), dtype=np.float32)
    parent = mine.parent_id
    build._collection.add(["s1", "s2"], vectors[:2], metadatas=[{"x": 1}, {"parent_id": parent}], documents=["a", "b"])
    build._collection.add(["s3"], vectors[2:], documents=["c"])
    found = {stored.id: (stored.parent_id, stored.family_hash) for stored in build.scan(content=True)}
    assert [found[id] for id in ("s1", "s2", "s3")] == [(NO_PARENT, ""), (parent, ""), (NO_PARENT, "")]
    build.replace([mine])
    build.flush()
    assert "s2" not in {stored.id for stored in build.scan()}, "in our family, of no version of ours"
    build.delete([NO_PARENT])
    build.flush()
    assert held(build) == wanted([mine, other])


@pytest.mark.parametrize("dropped_by_us", [True, False])
def test_lists_of_a_deleted_collection_reach_nobody(chroma_server: ChromaServer, dropped_by_us: bool) -> None:
    """Chroma leaves them behind and gives them to new rows; neither ours nor anybody else's may get them."""
    client = chromadb.HttpClient("127.0.0.1", chroma_server.port, settings=Settings(anonymized_telemetry=False))
    sink, signed = ChromaSink.server(chroma_server.url, prefix="lists"), marker()
    vectors = np.ones((40, DIMENSIONS), dtype=np.float32)
    if dropped_by_us:
        build = sink.create(signed, DIMENSIONS)
        build.replace([family("a", [f"{n}" for n in range(40)], metadata={"tags": ["ghost"]})])
        build.close()
        sink.drop(signed.build_id)
        theirs = client.create_collection(f"theirs-{signed.build_id}", embedding_function=None)
        theirs.add([f"{n}" for n in range(40)], vectors, metadatas=[{"x": 1}] * 40)
        metadatas = theirs.get()["metadatas"] or []
        client.delete_collection(theirs.name)
        assert not [one for one in metadatas if one and "tags" in one]
        return
    theirs = client.create_collection(f"theirs-{signed.build_id}", embedding_function=None)
    theirs.add([f"{n}" for n in range(40)], vectors, metadatas=[{"tags": ["ghost"]}] * 40)
    client.delete_collection(theirs.name)
    build = sink.create(signed, DIMENSIONS)
    mine = family("a", [f"{n}" for n in range(40)])
    build.replace([mine])
    assert held(build, content=True) == wanted([mine])
    build.close()
    sink.drop(signed.build_id)


# --- limits ---------------------------------------------------------------------------------------------------


def test_everything_is_scanned_over_many_pages(build: ChromaBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chroma_sink, "PAGE", 7)
    families = [family(f"f{number}", ["one", "two", "three"]) for number in range(7)]
    build.replace(families)
    build.flush()
    assert held(build) == wanted(families)
    assert held(build, content=True) == wanted(families)
    build.replace(families[:6])
    build.delete([families[6].parent_id])
    build.flush()
    assert held(build) == wanted(families[:6])


def test_families_beyond_one_condition(build: ChromaBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chroma_sink, "_KEYS", 3)
    old = [family(f"f{number}", ["one", "two"], version="1") for number in range(8)]
    new = [family(f"f{number}", ["one"], version="2") for number in range(8)]
    build.replace(old)
    build.replace(new)
    build.flush()
    assert held(build) == wanted(new)
    build.delete([one.parent_id for one in new[:7]])
    build.flush()
    assert held(build) == wanted(new[7:])


def test_requests_stay_within_number_and_bytes() -> None:
    documents = [project_family(records("a", ["x" * size]))[0] for size in (10, 10, 5000, 10, 90_000, 10)]
    parts = list(rows.slices(documents, 384, 3, 20_000))
    assert [documents[part] for part in parts] == [documents[0:3], documents[3:4], documents[4:5], documents[5:6]]
    assert list(rows.slices([], 384, 3, 20_000)) == []
    assert list(rows.slices(documents[:4], 8, 2, 10**9)) == [slice(0, 2), slice(2, 4)]


@pytest.mark.parametrize("field", ["title", "text"])
def test_a_poison_document_is_found_among_many(build: ChromaBuild, field: str) -> None:
    """Chroma refuses the whole request for one row; that row alone is left out."""
    families = [family(f"f{number}", ["one", "two"]) for number in range(20)]
    poison = [msgspec.structs.replace(families[7].documents[1], **{field: "lone \ud800 surrogate"})]
    families[7] = Family([families[7].documents[0], *poison], families[7].vectors)
    build.replace(families)
    [refused] = build.flush()
    assert (refused.id, refused.parent_id) == (poison[0].id, poison[0].parent_id)
    assert refused.reason
    assert held(build) == [row for row in wanted(families) if row[0] != refused.id]
    assert build.flush() == []


def test_the_dimensions_are_those_the_build_was_made_for(sink: ChromaSink, build: ChromaBuild, signed: Marker) -> None:
    build.sign(Marker("adopted", signed.build_id, 1))
    build.close()
    again = sink.open(signed.build_id)
    documents = project_family(records("a", ["x"]))
    again.replace([Family(documents, np.ones((1, 3), dtype=np.float32))])
    [refused] = again.flush()
    assert "3 dimensions, the build has 8" in refused.reason
    again.close()


def test_without_dimensions_the_first_vectors_decide(sink: ChromaSink, signed: Marker) -> None:
    def of_length(name: str, length: int) -> Family:
        return Family(project_family(records(name, ["x"])), np.ones((1, length), dtype=np.float32))

    build = sink.create(signed)
    build.replace([of_length("none", 0), of_length("a", 3), of_length("b", 5), of_length("c", 3)])
    refused = build.flush()
    assert {one.id for one in refused} == {of_length(n, 1).documents[0].id for n in ("none", "b")}
    assert all("dimensions" in one.reason for one in refused)
    assert held(build) == wanted([of_length("a", 3), of_length("c", 3)])
    build.close()
    again = sink.open(signed.build_id)
    again.replace([of_length("d", 5), of_length("e", 3)])
    assert [one.id for one in again.flush()] == [of_length("d", 5).documents[0].id]
    assert again.count() == 3
    again.close()
    with pytest.raises(WrongShape, match="3 dimensions, not 5"):
        sink.create(signed, 5)
    sink.create(signed, 3).close()


def test_a_build_of_other_dimensions_is_not_opened(sink: ChromaSink, build: ChromaBuild, signed: Marker) -> None:
    with pytest.raises(WrongShape, match="8 dimensions, not 9: rebuild it"):
        sink.create(signed, DIMENSIONS + 1)


# --- faults ---------------------------------------------------------------------------------------------------


def test_a_missing_build_is_missing(sink: ChromaSink, chroma_server: ChromaServer) -> None:
    for one in (sink, ChromaSink.server(chroma_server.url)):
        with pytest.raises(BuildMissing, match="rebuild"):
            one.open("nobody")
        with pytest.raises(BuildMissing, match="rebuild"):
            one.reader("nobody")
        with pytest.raises(ValueError, match="cannot name a build"):
            one.open("../other")


def test_a_build_that_was_dropped_meanwhile_is_missing(chroma_server: ChromaServer, signed: Marker) -> None:
    sink = ChromaSink.server(chroma_server.url, prefix="dropped")
    build = sink.create(signed, DIMENSIONS)
    sink.drop(signed.build_id)
    for call in (build.marker, build.count, lambda: build.replace([family("a", ["x"])])):
        with pytest.raises(BuildMissing):
            call()
    build.close()


def test_nobody_at_the_address_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        sink = ChromaSink.server(f"http://127.0.0.1:{taken.getsockname()[1]}")
        for call in (sink.builds, lambda: sink.open("b1"), lambda: sink.create(marker(), 8), lambda: sink.drop("b1")):
            with pytest.raises(Unreachable, match="start it, or correct the address"):
                call()


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "http://", "", "file:///x"])
def test_what_is_no_address_is_said_so(url: str) -> None:
    with pytest.raises(ValueError, match="no address of a Chroma server"):
        ChromaSink.server(url)


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("http://host:8000/chroma", "a path"),
        ("http://host:8000/?x=1", "a path"),
        ("https://user:hunter2@host", "password"),
        ("http://hunter2@host", "password"),
        ("http://user:hunter2", "no address"),
        ("http://[hunter2", "no address"),
    ],
)
def test_what_would_be_cut_off_an_address_is_refused(tmp_path: Path, url: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as error:
        open_sink(tmp_path, {"url": url})
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize(
    ("options", "what"),
    [({"prefix": "a b/ü"}, "prefix"), ({"prefix": ""}, "prefix"), ({"prefix": "-x"}, "prefix")]
    + [({"timeout": seconds}, "timeout") for seconds in (0, -1, float("nan"), float("inf"))],
)
def test_options_that_chroma_cannot_take_are_refused_at_once(tmp_path: Path, options: Any, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        open_sink(tmp_path, {"url": "http://127.0.0.1:1", **options})


@pytest.mark.parametrize("token", ["hunter2\nx", "hunter2 x", "hünter2", "hunter2\x7f", "  "])
def test_a_token_that_no_header_can_hold_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("MY_TOKEN", token)
    with pytest.raises(ConfigError, match="environment variable MY_TOKEN") as error:
        open_sink(tmp_path, {"url": "http://127.0.0.1:1", "token_variable": "MY_TOKEN"})
    assert "nter2" not in "".join(traceback.format_exception(error.value))
    with pytest.raises(ValueError, match="x-chroma-token") as refused:
        ChromaSink.server("http://127.0.0.1:1", headers={"x-chroma-token": f"{token}\n"})
    assert "nter2" not in str(refused.value)


def test_a_header_that_the_client_refuses_is_not_quoted(build: ChromaBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise httpx.LocalProtocolError("Illegal header value b'hunter2'")

    monkeypatch.setattr(build._collection, "count", refuse)
    with pytest.raises(WrongKey) as error:
        build.count()
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_a_token_is_stripped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2\n")
    sink = open_sink(tmp_path, {"url": "http://127.0.0.1:1/", "token_variable": "MY_TOKEN"})
    assert sink._place._headers == {"x-chroma-token": "hunter2"}  # type: ignore[union-attr]


def test_a_server_that_falls_silent_is_not_waited_for(chroma_server: ChromaServer, signed: Marker) -> None:
    sink = ChromaSink.server(chroma_server.url, prefix="silent", timeout=0.3)
    build = sink.create(signed, DIMENSIONS)
    with silent() as port:
        build._collection._client._api_url = f"http://127.0.0.1:{port}/api/v2"  # type: ignore[attr-defined]
        with pytest.raises(NotConfirmed, match="did not answer in time"):
            build.replace([family("a", ["x"])])
        for call in (lambda: ChromaSink.server(f"http://127.0.0.1:{port}", timeout=0.3).open("b1"), build.count):
            with pytest.raises(NotConfirmed, match="did not answer in time"):
                call()
    build.close()
    sink.drop(signed.build_id)


@contextmanager
def silent() -> Iterator[int]:
    """Takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_a_failed_removal_is_done_by_the_next_flush(build: ChromaBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    build.replace([family("a", ["old", "older"], version="1")])
    build.flush()
    new = family("a", ["new"], version="2")
    build.replace([new])
    with monkeypatch.context() as patch:
        patch.setattr(ChromaBuild, "_delete", fail)
        with pytest.raises(Transient):
            build.flush()
    assert len(held(build)) == 3, "both versions are there, none is missing"
    build.flush()
    assert held(build) == wanted([new])
    monkeypatch.setattr(ChromaBuild, "_delete", fail)
    assert build.flush() == [], "what is done is not done again"


def fail(*_: Any, **__: Any) -> None:
    raise Transient("not now")


def test_a_replacement_whose_answer_was_lost_leaves_nothing(
    build: ChromaBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a build that was empty: what landed of it is found by what the build holds."""
    lost, new, other = (
        family("a", ["1", "2", "3", "4"], version="1"),
        family("a", ["new"], version="2"),
        family("b", ["b"]),
    )
    with monkeypatch.context() as patch:
        lose_the_second_answer(build, patch)
        with pytest.raises(NotConfirmed):
            build.replace([lost])
    assert build.count() == 4
    build.replace([new, other])
    build.flush()
    assert held(build) == wanted([new, other])


def test_a_flush_after_a_failed_replacement_takes_nothing_away(
    build: ChromaBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (family("a", [f"{v} {n}" for n in range(4)], version=v) for v in "123")
    build.replace([first])
    build.flush()
    build.replace([second])
    with monkeypatch.context() as patch:
        lose_the_second_answer(build, patch)
        with pytest.raises(NotConfirmed):
            build.replace([third])
    build.flush()
    assert set(wanted([first, second])) <= set(held(build))
    build.replace([third])
    build.flush()
    assert held(build) == wanted([third])


def lose_the_second_answer(build: ChromaBuild, patch: pytest.MonkeyPatch) -> None:
    """Requests of two documents; what the second one asks for is done, and nobody says so."""
    upsert, calls = build._collection.upsert, []

    def losing(**asked: Any) -> None:
        upsert(**asked)
        calls.append(asked)
        if len(calls) == 2:
            raise httpx.ReadTimeout("lost")

    patch.setattr(chroma_sink, "PAGE", 2)
    patch.setattr(build._collection, "upsert", losing)


def test_credentials_are_in_no_message(chroma_server: ChromaServer) -> None:
    with pytest.raises(ValueError, match="no address") as error:
        Server("ftp://user:hunter2@host", prefix="x", headers=None, timeout=1)
    assert "hunter2" not in str(error.value)
    sink = ChromaSink.server(chroma_server.url, headers={"Authorization": "Bearer hunter2"})
    with pytest.raises(BuildMissing) as missing:
        sink.open("nobody")
    assert "hunter2" not in repr(missing.value) + repr(sink) + repr(vars(sink))


# --- other processes ------------------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from sinks.chroma import ChromaSink
from sinks.conformance.samples import family

build = ChromaSink.embedded(Path(sys.argv[1])).open(sys.argv[2])
for line in sys.stdin:
    version, *texts = line.split()
    build.replace([family("a", texts, version=version)])
    build.flush()
    print("done", flush=True)
build.close()
"""


def test_a_reader_goes_on_while_another_process_replaces(sink: ChromaSink, build: ChromaBuild, signed: Marker) -> None:
    """Its vectors are those of when it opened: answers that show it make it open again, and no family is absent."""
    families = [family("a", ["first", "second"]), *(family(f"f{number}", ["x"]) for number in range(20))]
    build.replace(families)
    build.close()
    reader = sink.reader(signed.build_id)
    command = [sys.executable, "-c", WRITER, str(sink._place._root), signed.build_id]  # type: ignore[union-attr]
    ours = [Filter("parent_id", any_of=(families[0].parent_id,))]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin and writer.stdout
        for version, texts in (("2", ["third"]), ("3", ["fourth", "fifth"])):
            writer.stdin.write(" ".join([version, *texts]) + "\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == "done\n"
            now = {document.id for document in family("a", texts, version=version).documents}
            assert {hit.id for hit in reader.query(vector("first"), 5, ours)} == now
            assert now <= {hit.id for hit in reader.query(vector(texts[0]), 30)}
            assert {document.id for document in reader.get(sorted(now))} == now
        writer.stdin.close()
        assert writer.wait(30) == 0
    reader.close()


def test_a_reader_refreshes_under_the_guard_and_keeps_its_view_if_it_cannot(tmp_path: Path, signed: Marker) -> None:
    held_: list[str] = []

    @contextmanager
    def guard() -> Iterator[None]:
        if held_ == ["locked"]:
            raise Transient("somebody writes")
        held_.append("taken")
        yield

    sink = ChromaSink.embedded(tmp_path / "chroma", guard=guard)
    build = sink.create(signed, DIMENSIONS)
    build.replace([family("a", ["x"])])
    reader = sink.reader(signed.build_id)
    reader.refresh()
    assert held_ == ["taken", "taken"]
    held_[:] = ["locked"]
    with pytest.raises(Transient, match="somebody writes"):
        reader.refresh()
    assert len(reader.query(vector("x"), 1)) == 1
    reader.close()
    build.close()


def test_many_refreshes_leave_nothing_open(sink: ChromaSink, build: ChromaBuild, signed: Marker) -> None:
    from sinks.chroma import clients

    build.replace([family("a", ["x"])])
    readers = [sink.reader(signed.build_id) for _ in range(3)]
    for _ in range(5):
        for reader in readers:
            reader.refresh()
            assert reader.query(vector("x"), 1)
    for reader in readers:
        reader.close()
    build.close()
    assert not any(clients._spellings.get(folder_) for folder_ in clients._spellings)
    assert not clients._writers


def test_it_is_a_sink(sink: ChromaSink, build: ChromaBuild) -> None:
    as_sink: Sink = sink
    as_build: Build = build
    assert (as_sink.wants_vectors, as_build.count()) == (True, 0)
