"""`chunksink cache ...` over a home whose vectors depend on the text alone."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.canonical import text_hash
from chunksink.chunkbus.layout import BusRoot
from chunksink.cli import run
from chunksink.embeddings import load
from chunksink.embeddings.cache import VectorCache
from chunksink.exits import Exit
from chunksink.rebuild import locks
from chunksink.sinks.errors import Unreachable
from tests.embeddings.helpers import HashEncoder, tamper
from tests.support.bus import commit, source
from tests.support.home import Home
from tests.support.local_engines import eager as fts
from tests.support.watched_sinks import Moment, watching

pytestmark = pytest.mark.usefixtures("model")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> HashEncoder:
    """In place of one that takes seconds to load."""
    encoder = HashEncoder(dimension=8)
    monkeypatch.setattr(load, "load_encoder", lambda _name, **_settings: encoder)
    return encoder


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Two partitions of two sources each, indexed; the second was rewritten, so that one text is not used any more."""
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), fts)
    commit(home.root, "p1", [*source("docs/a.md", "a cat", "a mat"), *source("docs/b.md", "a boat")])
    commit(home.root, "p2", [*source("docs/c.md", "a cow"), *source("docs/d.md", "a cat")])
    home.rebuild()
    commit(home.root, "p2", [*source("docs/c.md", "a crow", version="2"), *source("docs/d.md", "a cat")])
    home.rebuild()
    return home


def cache(home: Home, *arguments: str) -> int:
    chunks = ["--chunks", str(home.root.path)] if arguments[0] in ("gc", "import") else []
    return run(["cache", *arguments, *chunks, "--home", str(home.folder)])


def told(home: Home, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert cache(home, *arguments, "--json") == Exit.OK
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def rows(home: Home) -> int:
    with VectorCache.open(home.folder / "vectors.db", read_only=True) as opened:
        count: int = opened.read("SELECT count(*) FROM vector")[0][0]
        return count


# -- looking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["stats"], ["verify"], ["verify", "--repair"], ["export", "x"], ["gc"]])
def test_without_a_cache_it_says_what_makes_one(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commit(BusRoot(tmp_path / "chunks"), "p1", source("docs/a.md", "a"))
    assert run(["cache", *arguments]) == Exit.USAGE
    assert "`chunksink rebuild` makes one" in capsys.readouterr().err
    assert not (tmp_path / ".chunksink").exists()


def test_stats_for_people_and_machines(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert cache(home, "stats") == Exit.OK
    out = capsys.readouterr().out
    assert "5 vectors" in out
    assert home.encoder.fingerprint in out
    document = told(home, capsys, "stats")
    assert document["rows"] == 5
    assert document["models"][0]["rows_by_precision"] == {"float32": 5}


def test_a_reference_leads_to_its_vector(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    ref = f"cache:{home.encoder.fingerprint}/{text_hash('a boat').removeprefix('sha256:')}"
    assert told(home, capsys, "show", ref)["vector"] == home.encoder.vector("a boat").tolist()
    assert cache(home, "show", ref) == Exit.OK
    assert "8 dimensions, float32, norm 1.0000" in capsys.readouterr().out


@pytest.mark.parametrize("ref", ["", "cache:", "cache:12/34", "vector:" + "ab" * 32, f"cache:{'ab' * 32}/{'cd' * 32}"])
def test_a_reference_to_nothing_is_told(ref: str, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert cache(home, "show", ref) == Exit.USAGE
    err = capsys.readouterr().err
    assert "cache:FINGERPRINT/TEXT_HASH" in err or "is not cached" in err


def test_long_texts_are_listed_with_their_place(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(home, capsys, "long-texts") == {"max_length": None, "length_unit": None, "chunks": []}
    tamper(home.folder / "vectors.db", "UPDATE model SET max_length = 4")
    hashes = [bytes.fromhex(text_hash(text).removeprefix("sha256:")) for text in ("a cat", "a cow", "a boat")]
    with VectorCache.open(home.folder / "vectors.db") as opened:
        vectors = home.encoder.encode(["a cat", "a cow", "a boat"])
        opened.put(home.encoder.info, hashes, vectors, [9, 9, 4], replaced=hashes)
    listed = told(home, capsys, "long-texts")["chunks"]
    # "a cow" is no current chunk, and four is not more than four.
    assert [(chunk["partition"], chunk["text_hash"], chunk["length"]) for chunk in listed] == [
        ("p1", text_hash("a cat"), 9),
        ("p2", text_hash("a cat"), 9),
    ]
    assert cache(home, "long-texts") == Exit.OK
    assert "2 chunks of more than 4 tokens" in capsys.readouterr().out


# -- keeping it sound and small --------------------------------------------------------------------------------------


def test_a_bad_row_is_found_and_dropped(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert cache(home, "verify") == Exit.OK
    assert capsys.readouterr().out == "sound: 5 vectors\n"
    tamper(home.folder / "vectors.db", "UPDATE vector SET vector = zeroblob(32) WHERE id = 2")
    assert cache(home, "verify") == Exit.DRIFT
    out = capsys.readouterr().out
    assert "checksum mismatch: cache:" in out
    assert "1 bad row of 5; --repair drops them" in out
    assert rows(home) == 5
    assert cache(home, "verify", "--repair") == Exit.OK
    assert "1 bad row of 5 dropped" in capsys.readouterr().out
    assert rows(home) == 4
    home.encoder.asked.clear()
    home.rebuild()
    assert len(home.encoder.asked) == 1


def test_a_damaged_file_is_told_and_salvaged(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    file = home.folder / "vectors.db"
    with VectorCache.open(file) as opened:
        opened.read("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(file.read_bytes())
    content[16:40] = b"\xff" * 24  # the header: SQLite cannot make sense of the file
    file.write_bytes(content)
    for arguments in (["stats"], ["verify"], ["export", str(home.folder / "x")]):
        assert cache(home, *arguments) == Exit.DRIFT
        err = capsys.readouterr().err
        assert "chunksink cache verify --repair" in err
        assert "Traceback" not in err
    assert bytes(content) == file.read_bytes()
    assert cache(home, "verify", "--repair") == Exit.OK
    assert "salvaged 5 rows; the damaged file is kept as" in capsys.readouterr().out
    assert cache(home, "verify") == Exit.OK


def test_gc_says_how_much_and_drops_what_no_chunk_needs(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert cache(home, "gc", "--dry-run") == Exit.OK
    assert "would drop 1 vector of 5, 32 bytes" in capsys.readouterr().out
    assert rows(home) == 5
    assert cache(home, "gc") == Exit.OK
    assert "dropping 1 vector of 5, 32 bytes" in capsys.readouterr().out
    assert rows(home) == 4
    assert told(home, capsys, "gc")["rows"] == 0
    home.encoder.asked.clear()
    home.rebuild()
    assert home.encoder.asked == []


def test_gc_keeps_the_models_of_the_live_and_the_previous_build(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = home.encoder, HashEncoder(dimension=8, name="two"), HashEncoder(dimension=8, name="three")
    for encoder in (second, third):
        home.encoder = encoder
        home.rebuild()
    assert told(home, capsys, "gc")["rows_by_model"] == {first.fingerprint: 5}
    assert rows(home) == 8
    for file in home.folder.glob("state.db*"):
        file.unlink()
    assert told(home, capsys, "gc")["rows"] == 0, "where no build is known, every model may be one's"


def test_gc_keeps_the_model_of_a_build_that_is_not_finished(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """Else the run that goes on with it would compute them again."""

    def fail() -> None:
        raise Unreachable("fts went away")

    first, second = home.encoder, HashEncoder(dimension=8, name="two")
    home.encoder = second
    with pytest.raises(Unreachable):
        home.rebuild(wrap=watching("fts", Moment("scan", 1, fail)))
    assert told(home, capsys, "gc")["rows_by_model"] == {first.fingerprint: 1}, "of the text that no chunk has"
    second.asked.clear()
    home.rebuild()
    assert second.asked == []


def test_gc_stays_away_while_a_partition_is_missing_or_broken(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    chunks = home.root.chunks_file("p1")
    whole = chunks.read_bytes()
    chunks.write_bytes(whole[:-5])
    assert cache(home, "gc") == Exit.INVALID_INPUT
    chunks.unlink()
    home.root.manifest_file("p1").rename(home.folder / "away")
    assert cache(home, "gc") == Exit.INVALID_INPUT
    assert "p1" in capsys.readouterr().err
    assert rows(home) == 5


def test_gc_does_not_empty_the_cache(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Most likely --chunks names the wrong folder."""
    other = BusRoot(tmp_path / "other")
    for key in ("p1", "p2"):
        commit(other, key, source(f"docs/{key}.md", f"quite another text in {key}"))
    assert run(["cache", "gc", "--chunks", str(other.path), "--home", str(home.folder)]) == Exit.USAGE
    assert "is it the right folder?" in capsys.readouterr().err
    assert rows(home) == 5


def test_gc_and_import_wait_for_the_writer(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache(home, "export", str(tmp_path / "x"))
    with locks.writing(home.folder):
        monkeypatch.setattr(locks, "writing", partial(locks.writing, wait_seconds=0.1))
        for arguments in (["gc"], ["import", str(tmp_path / "x")]):
            assert cache(home, *arguments) == Exit.LOCKED
            assert "another run is writing" in capsys.readouterr().err


# -- from machine to machine -----------------------------------------------------------------------------------------


def test_an_export_saves_the_other_machine_the_work(
    home: Home, model: HashEncoder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "vectors.bin"
    cache(home, "gc")  # of a few rows all are asked for
    capsys.readouterr()
    assert cache(home, "export", str(file)) == Exit.OK
    assert "4 vectors" in capsys.readouterr().out
    other = Home(tmp_path / "there", home.root, fts)
    assert cache(other, "import", str(file)) == Exit.OK
    out = capsys.readouterr().out
    assert "4 vectors added" in out
    assert "hash in float32: 4 texts embedded again, least cosine 1.00000" in out
    assert sorted(model.asked) == ["a boat", "a cat", "a crow", "a mat"]
    other.rebuild()
    assert other.encoder.asked == []


def test_vectors_of_an_unknown_model_are_left_out(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache(home, "gc")
    home.encoder = HashEncoder(dimension=8, name="elsewhere")
    home.rebuild()
    cache(home, "export", str(tmp_path / "x"))
    other = Home(tmp_path / "there", home.root, fts)
    assert cache(other, "import", str(tmp_path / "x")) == Exit.REFUSED
    out, err = capsys.readouterr()
    assert "4 vectors added" in out
    assert "elsewhere in float32: left out, since the model cannot be used here" in err
    assert rows(other) == 4
