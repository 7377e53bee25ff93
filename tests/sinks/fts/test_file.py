"""The file of the embedded keyword sink: concurrency, errors, and erased content."""

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import psutil
import pytest

from chunksink.chunkbus.canonical import text_hash
from chunksink.sinks.conformance.samples import family, hashes_in, hashes_of, marker, renamed, with_vectors
from chunksink.sinks.contract import NO_PARENT, Build, Marker
from chunksink.sinks.errors import BuildBroken, BuildMissing, Transient
from chunksink.sinks.fts import FtsBuild, FtsReader, FtsSink, index_check
from chunksink.sinks.fts.sink import FILE
from chunksink.sinks.reader import Filter, KeywordReader
from tests.support.fts import run
from tests.support.many_families import many_families, whole

# --- the file -------------------------------------------------------------------------------------------------


def test_readers_see_one_state_during_a_write(build: FtsBuild, sink: FtsSink) -> None:
    """A replacement is one transaction, so no reader ever sees two versions of a family."""
    build.replace([family("a", ["version 0"] * 5, version="0")])
    seen: list[set[str]] = []
    done = threading.Event()

    def look(reader: KeywordReader) -> None:
        while not done.is_set():
            documents = reader.get([hit.id for hit in reader.search("version", 50)])
            seen.append({document.document_id for document in documents})
        reader.close()

    threads = [threading.Thread(target=look, args=(sink.reader(sink.builds()[0]),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(1, 40):
        build.replace([family("a", [f"version {number}"] * 5, version=str(number))])
    done.set()
    for thread in threads:
        thread.join()
    assert len(seen) > 20
    assert all(len(one) <= 1 for one in seen)


def test_only_differences_are_written(build: FtsBuild) -> None:
    """Editing one of many documents changes as many rows as editing the only one."""
    changes = []
    for texts in ["one"], ["one", *map(str, range(50))]:
        first, *others = family(f"{len(texts)} texts", texts).documents
        build.replace([with_vectors([first, *others])])
        edited = renamed(msgspec.structs.replace(first, text="edited", text_hash=text_hash("edited")), first.id)
        before = build._connection.total_changes
        build.replace([with_vectors([edited, *others])])
        changes.append(build._connection.total_changes - before)
        assert set(hashes_of([with_vectors([edited, *others])])) <= set(hashes_in(build, content=True))
    assert changes[0] == changes[1]


def test_foreign_rows_are_found_and_removable(sink: FtsSink, build: Build, path: Path) -> None:
    mine = family("a", ["mine"])
    build.replace([mine])
    run(path, "INSERT INTO documents (row, id, parent_id, text) VALUES (-5, 'stranger', '', 'who knows')")
    strangers = [stored for stored in build.scan() if stored.parent_id == NO_PARENT]
    assert [stored.id for stored in strangers] == ["stranger"]
    with closing(sink.reader(sink.builds()[0])) as reader:
        assert [hit.id for hit in reader.search("knows")] == ["stranger"]
        assert reader.get(["stranger", mine.documents[0].id]) == [
            mine.documents[0]
        ]  # not written by the sink, so ignored
    build.delete([NO_PARENT])
    build.flush()
    assert hashes_in(build) == hashes_of([mine])


def test_a_foreign_row_without_text_or_with_invalid_lists_ends_no_search(
    build: FtsBuild, reader: FtsReader, path: Path
) -> None:
    build.replace([family("a", ["apple"])])
    run(path, "INSERT INTO documents (id, parent_id, title, tags) VALUES ('stranger', 'p', 'apple', 'fruit, sweet')")
    found = [hit.id for hit in reader.search("apple")]
    assert "stranger" in found
    assert [document.id for document in reader.get(found)] == [family("a", ["apple"]).documents[0].id]
    assert set(reader.snippets("apple", found)) == {family("a", ["apple"]).documents[0].id}
    with pytest.raises(BuildBroken, match="verify --repair"):
        reader.search("apple", 10, [Filter("tags", any_of=("fruit",))])


def test_kill_during_creation_leaves_no_build(sink: FtsSink, monkeypatch: pytest.MonkeyPatch) -> None:
    signed = marker()

    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(FtsBuild, "sign", kill)
    with pytest.raises(Killed):
        sink.create(signed)
    assert sink.builds() == []
    monkeypatch.undo()
    build = sink.create(signed)
    assert build.marker() == signed
    build.close()


# --- errors ---------------------------------------------------------------------------------------------------


def test_locked_file_is_transient(build: FtsBuild, path: Path) -> None:
    build._connection.execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Transient, match="another process is writing"):
        build.replace([family("a", ["x"])])
    other.execute("ROLLBACK")
    other.close()
    build.replace([family("a", ["x"])])
    assert build.count() == 1


def test_full_disk_is_transient_and_keeps_the_old_family(build: FtsBuild) -> None:
    old = family("a", ["old"])
    build.replace([old])
    pages = build._connection.execute("PRAGMA page_count").fetchone()[0]
    build._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(Transient, match="disk space"):
        build.replace([family("a", ["new " * 20_000], version="2")])
    assert hashes_in(build) == hashes_of([old])


def test_damage_requires_a_rebuild(sink: FtsSink, build: FtsBuild, path: Path) -> None:
    build.replace([family("a", [f"text {number}" for number in range(200)])])
    build.close()
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(BuildBroken, match="verify --repair"):
        sink.open(sink.builds()[0])
    path.unlink()
    for open_ in (sink.open, sink.reader):
        with pytest.raises(BuildMissing, match="chunksink sync`"):
            open_(sink.builds()[0])
    assert not path.exists(), "looking for a build made one"


def test_build_of_another_version_is_created_again(sink: FtsSink, build: FtsBuild, path: Path) -> None:
    signed = build.marker()
    assert signed is not None
    build.replace([family("a", ["old"])])
    build._connection.execute("PRAGMA user_version = 2")
    build.close()
    for opened in sink.open, sink.reader:
        with pytest.raises(BuildMissing, match="chunksink sync"):
            opened(signed.build_id)
    assert path.exists(), "only looked at"
    with closing(sink.create(signed)) as again:
        assert (again.count(), again.marker()) == (0, signed)


def test_foreign_id_with_nul_does_not_remove_other_documents(build: FtsBuild, path: Path) -> None:
    """SQLite before 3.45 truncates JSON texts at this character."""
    one = family("a", ["one", "two"])
    build.replace([one])
    add = "INSERT INTO documents (id, parent_id, text) VALUES"
    run(path, f"{add} ('{one.documents[0].id}' || char(0) || 'z', '{one.parent_id}', 'x')")
    run(path, f"{add} ('s', 'p' || char(0) || 'q', 'x')")
    build.replace([one])
    build.delete(["p\0q"])
    assert hashes_in(build) == hashes_of([one])
    assert index_check.damage(build._connection) == ""


def test_reader_sees_a_recreated_build(sink: FtsSink, build: FtsBuild, reader: FtsReader) -> None:
    build.replace([family("a", ["river"])])
    assert len(reader.search("river")) == 1
    build_id = build.marker().build_id  # type: ignore[union-attr]
    shutil.rmtree(sink._root / build_id)
    reader.refresh()
    assert len(reader.search("river")) == 1, "as long as there is no other one"
    with closing(sink.create(Marker("home", build_id, 1))) as again:
        again.replace([family("a", ["river"]), family("b", ["another river"])])
        reader.refresh()
        assert len(reader.search("river")) == 2


# --- changes by other programs --------------------------------------------------------------------------------


@pytest.fixture
def filled(sink: FtsSink, build: FtsBuild) -> Iterator[tuple[FtsBuild, str]]:
    """A large build and its id."""
    build.replace(many_families())
    yield build, sink.builds()[0]


@pytest.mark.parametrize("table", ["documents", "marker"])
def test_table_dropped_by_others_is_reported(
    sink: FtsSink, filled: tuple[FtsBuild, str], path: Path, table: str
) -> None:
    build, build_id = filled
    run(path, f"DROP TABLE {table}")
    with pytest.raises(BuildBroken, match="verify --repair"):
        build.count() if table == "documents" else build.marker()
    build.close()
    with pytest.raises(BuildBroken, match="verify --repair"):
        sink.open(build_id)
    whole(sink)


def test_text_of_others_that_is_no_utf_8_is_reported(filled: tuple[FtsBuild, str], path: Path) -> None:
    build, _ = filled
    run(path, "UPDATE documents SET title = CAST(x'fc6265' AS TEXT)")
    with pytest.raises(BuildBroken, match="verify --repair"):
        build.delete([many_families()[0].parent_id])


@pytest.mark.parametrize("kind", [FtsBuild, FtsReader])
def test_a_file_that_cannot_be_opened_is_closed(kind: Callable[[Path], object], build: FtsBuild, path: Path) -> None:
    build.close()
    run(path, "PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = 'CREATE' WHERE name = 'marker'")
    with pytest.raises(BuildBroken) as caught:
        kind(path)
    assert str(path) not in [one.path for one in psutil.Process().open_files()]
    del caught  # until here its traceback keeps the connection


def test_unreadable_row_differs_and_blocks_nothing(filled: tuple[FtsBuild, str], path: Path) -> None:
    run(path, "UPDATE documents SET tags = 'no list', year = 'x' WHERE row = 1")
    found = set(hashes_in(filled[0], content=True)) ^ set(hashes_of(many_families()))
    assert {row[2:] for row in found} - {row[2:] for row in hashes_of(many_families())} == {("", "")}
    assert len(found) == 2


# --- scrubbing: no byte of deleted content is left -------------------------------------------------------------


CANARY = "kanarienvogelsang"
SECRET = family("secret.md", [f"{CANARY}{number} 東京{CANARY}" for number in range(600)])
KEPT = [family(f"kept{number}.md", [f"plain words {number} 東京都庁"]) for number in range(10)]


def traces(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir() if CANARY[1:].encode() in file.read_bytes()}


@pytest.fixture
def secret(tmp_path: Path) -> FtsSink:
    sink = FtsSink(tmp_path)
    with closing(sink.create(Marker("home", "b1", 1))) as build:
        build.replace([*KEPT, SECRET])
    return sink


def test_scrub_erases_text_deleted_by_another_sqlite(secret: FtsSink, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "b1" / FILE)) as other:
        other.execute("PRAGMA secure_delete = OFF")
        other.execute("DELETE FROM documents WHERE parent_id = ?", [SECRET.parent_id])
        other.commit()
    assert traces(tmp_path / "b1") == {FILE}
    with closing(secret.open("b1")) as build, closing(secret.reader("b1")) as reader:
        build.scrub()
        assert hashes_in(build) == hashes_of(KEPT)
        assert len(reader.search("plain words")) == len(reader.search("東京都庁")) == 10
        assert reader.search(CANARY) == []
    assert traces(tmp_path / "b1") == set()


def test_scrub_erases_the_log_despite_a_reader(secret: FtsSink, tmp_path: Path) -> None:
    """If nobody empties the log, its tail is never overwritten."""
    with closing(secret.reader("b1")) as reader, closing(secret.open("b1")) as build:
        assert reader.search("plain")
        build.replace([SECRET])
        build.delete([SECRET.parent_id])
        assert f"{FILE}-wal" in traces(tmp_path / "b1")
        build.scrub()
        assert traces(tmp_path / "b1") == set()


def test_scrub_during_a_read_is_transient(secret: FtsSink, tmp_path: Path) -> None:
    with closing(secret.open("b1")) as build, closing(sqlite3.connect(tmp_path / "b1" / FILE)) as other:
        build._connection.execute("PRAGMA busy_timeout = 10")
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM documents").fetchone()
        with pytest.raises(Transient, match="is being read"):
            build.scrub()
        other.execute("ROLLBACK")
        build.scrub()
        assert hashes_in(build) == hashes_of([*KEPT, SECRET])
