"""A scan finds damage to the full-text indexes although all documents exist; the next write repairs it."""

import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chunksink.sinks.conformance.samples import family, hashes_in, hashes_of, marker
from chunksink.sinks.document import Family
from chunksink.sinks.errors import BuildBroken, Transient
from chunksink.sinks.fts import FtsBuild, FtsSink
from chunksink.sinks.fts import schema as layout
from tests.support.damaged_files import overwrite
from tests.support.fts import DAMAGES, run

TEXTS = [
    "red apples",
    "東京タワーの夜",
    "สวัสดีชาวโลก",
    "größere Äpfel",
    "x",
    "東",
    "\U00020000 rare",
    "🙂",
    "Straße nach Łódź",
]
FAMILIES = [family(f"f{number}", [f"{text} {number}" for text in TEXTS]) for number in range(40)]

WORDS = ("red", "東京", "ชาวโลก", "Apfel", "夜", "rare", "Lodz")


@pytest.fixture
def build(sink: FtsSink) -> Iterator[FtsBuild]:
    with closing(sink.create(marker())) as build:
        build.replace(FAMILIES)
        yield build


def damage(build: FtsBuild) -> set[str]:
    return {stored.damage for stored in build.scan(content=True)}


def found(sink: FtsSink) -> list[list[str]]:
    with closing(sink.reader(sink.builds()[0])) as reader:
        return [sorted(hit.id for hit in reader.search(word, 500)) for word in WORDS]


@pytest.mark.parametrize("index", ["idx_documents_id", "idx_documents_parent_id_document_hash"])
def test_scan_of_a_build_with_a_damaged_b_tree_index_reports_that_it_is_broken(
    index: str, build: FtsBuild, path: Path
) -> None:
    overwrite(path, index, random.Random(7).randbytes)
    with pytest.raises(BuildBroken, match=str(path)):
        list(build.scan(content=True))


@pytest.mark.parametrize("harm", DAMAGES)
def test_scan_reports_the_damage_and_the_next_write_repairs_it(
    harm: str, sink: FtsSink, build: FtsBuild, path: Path
) -> None:
    before = found(sink)
    assert all(before)
    run(path, DAMAGES[harm])
    assert damage(build) == damage(build)
    [message] = damage(build)
    assert str(path) in message
    assert ("trigram index" if "trigrams" in harm else "word index") in message
    assert hashes_in(build) == hashes_of(FAMILIES), "its documents are all there"
    build.close()
    with closing(sink.open(sink.builds()[0])) as other:  # opened by the next writer
        other.replace(FAMILIES[:1])
        assert damage(other) == {""}
        assert hashes_in(other, content=True) == hashes_of(FAMILIES)
    assert found(sink) == before


@pytest.mark.parametrize("harm", ["emptied", "structure overwritten", "trigrams emptied"])
def test_concurrent_changes_are_written_too(harm: str, sink: FtsSink, build: FtsBuild, path: Path) -> None:
    """A damaged index accepts neither writes nor removals."""
    run(path, DAMAGES[harm])
    assert damage(build) != {""}
    build.delete([FAMILIES[0].parent_id])
    build.replace([new := family("f1", ["other words", "東京の朝"], version="2")])
    assert damage(build) == {""}
    assert hashes_in(build, content=True) == hashes_of([new, *FAMILIES[2:]])


@pytest.mark.parametrize("harm", ["emptied", "structure overwritten", "trigrams emptied"])
def test_writer_that_did_not_check_is_informed(harm: str, build: FtsBuild, path: Path) -> None:
    run(path, DAMAGES[harm])
    with pytest.raises(BuildBroken, match="verify --repair"):
        build.replace([family("f0", ["東京 new"], version="2")])
    assert hashes_in(build) == hashes_of(FAMILIES)


def test_kill_leaves_the_repair_pending(sink: FtsSink, build: FtsBuild, path: Path) -> None:
    run(path, DAMAGES["emptied"])
    assert damage(build) != {""}
    with pytest.raises(KeyboardInterrupt), build._transaction() as connection:
        connection.execute("DELETE FROM marker")
        raise KeyboardInterrupt
    assert damage(build) != {""}
    build.replace(FAMILIES[:1])
    assert damage(build) == {""}


@pytest.mark.parametrize(
    "harm",
    [
        *(f"DROP TABLE {table}" for table in layout.ALL_TABLES),
        "DELETE FROM documents_fts_data",
        "DELETE FROM documents_fts_config",
    ],
)
def test_missing_table_breaks_the_build(harm: str, sink: FtsSink, build: FtsBuild, path: Path) -> None:
    build.close()
    run(path, harm)
    with pytest.raises(BuildBroken, match="verify --repair"):
        sink.open(sink.builds()[0])


# --- no false alarm -------------------------------------------------------------------------------------------


def test_index_after_any_changes_is_sound(sink: FtsSink, build: FtsBuild, path: Path) -> None:
    """Including changes by other programs. Searches agree with the documents."""
    dice = random.Random(3)
    for number in range(60):
        some = [
            family(f"f{dice.randrange(50)}", dice.choices(TEXTS, k=dice.randint(1, 5)), version=str(number))
            for _ in range(3)
        ]
        if dice.random() < 0.3:
            build.delete([one.parent_id for one in some])
        else:
            build.replace(some)
    assert damage(build) == {""}
    run(path, *(f"INSERT INTO {index}({index}) VALUES ('optimize')" for index in layout.INDEXES), "VACUUM")
    assert damage(build) == {""}
    build.scrub()
    assert damage(build) == {""}
    run(
        path,
        "UPDATE documents SET text = '大阪 by hand: Ørsted', spaceless = 1 WHERE row % 5 = 0",
        "UPDATE documents SET year = 1",
    )
    assert damage(build) == {""}
    run(path, *(f"INSERT INTO {index}({index}, rank) VALUES ('merge', 500)" for index in layout.INDEXES))
    assert damage(build) == {""}
    texts = {stored.id: stored.document.text for stored in build.scan(content=True) if stored.document}
    with closing(sink.reader(sink.builds()[0])) as reader:
        for word in ("red", "ชาวโลก", "大阪", "hand", "rare"):
            hits = {hit.id for hit in reader.search(word, 500)}
            assert hits == {id for id, text in texts.items() if word in text}
            assert hits
        assert reader.search("orsted", 500) == reader.search("Ørsted", 500) != []


def test_every_character_is_counted_as_by_the_index(build: FtsBuild) -> None:
    signs = [chr(code) for code in range(0x30000) if not 0xD800 <= code < 0xE000]
    for start in range(0, len(signs), 20_000):
        build.replace(
            [
                family(f"signs {place}", ["東" + "".join(signs[place : place + 1000])])
                for place in range(start, min(start + 20_000, len(signs)), 1000)
            ]
        )
    assert build.flush() == []
    assert damage(build) == {""}


def test_empty_build_is_sound(sink: FtsSink, build: FtsBuild) -> None:
    build.delete([one.parent_id for one in FAMILIES])
    assert damage(build) == set()
    assert build._damage() == ""


def test_build_with_a_reader_and_writers_is_sound(sink: FtsSink, build: FtsBuild, path: Path) -> None:
    reading = sqlite3.connect(path, isolation_level=None)
    reading.execute("BEGIN")
    reading.execute("SELECT count(*) FROM documents").fetchone()
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            with closing(sink.open(sink.builds()[0])) as other:
                other.replace([family(f"f{number % 9}", [f"{text} {number}" for text in TEXTS], version=str(number))])

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert all(damage(build) == {""} for _ in range(10))
    finally:
        done.set()
        thread.join()
    assert reading.execute("SELECT count(*) FROM documents").fetchone()[0] == len(FAMILIES) * len(TEXTS)
    reading.close()
    run(path, DAMAGES["emptied"])
    with closing(sqlite3.connect(path, isolation_level=None)) as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM documents").fetchone()
        assert damage(build) != {""}
        build.replace(FAMILIES[:1])
        assert damage(build) == {""}


def test_check_blocked_by_a_writer_is_reported(build: FtsBuild, path: Path) -> None:
    build._connection.execute("PRAGMA busy_timeout = 50")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Transient, match="another process is writing"):
            damage(build)
        assert len(list(build.scan())) == build.count(), "without its content it is only counted"
    assert damage(build) == {""}


def test_large_load_checks_nothing(build: FtsBuild) -> None:
    statements: list[str] = []
    build._connection.set_trace_callback(statements.append)
    build.replace([Family(FAMILIES[0].documents)])
    list(build.scan())
    assert not [statement for statement in statements if "integrity-check" in statement or "rebuild" in statement]
