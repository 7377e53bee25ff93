"""`chunksink cache ...` over a home whose vectors depend on the text alone."""

from pathlib import Path

import pytest

from chunksink.chunkbus.canonical import text_hash
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.storage import open_storage
from chunksink.command_line.exits import Exit
from chunksink.embeddings import load
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.segments import import_segments, write_segment
from chunksink.rebuild import locks
from chunksink.sinks.errors import Unreachable
from tests.chunksink.shell import Shell
from tests.embeddings.helpers import HashEncoder, tamper
from tests.support.bus import commit, source
from tests.support.home import Home
from tests.support.local_engines import eager as fts
from tests.support.watched_sinks import Moment, watching

pytestmark = pytest.mark.usefixtures("model")


@pytest.fixture
def model(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> HashEncoder:
    """Replaces a model that takes seconds to load."""
    encoder = HashEncoder(dimension=8)
    monkeypatch.setattr(load, "load_encoder", lambda *_arguments, **_options: encoder)
    return encoder


@pytest.fixture
def home(shell: Shell) -> Home:
    """Two indexed partitions of two sources each. The second was rewritten, so one cached text is no longer used."""
    home = Home(shell.home, shell.root, fts)
    commit(home.root, "p1", [*source("docs/a.md", "a cat", "a mat"), *source("docs/b.md", "a boat")])
    commit(home.root, "p2", [*source("docs/c.md", "a cow"), *source("docs/d.md", "a cat")])
    home.rebuild()
    commit(home.root, "p2", [*source("docs/c.md", "a crow", version="2"), *source("docs/d.md", "a cat")])
    home.rebuild()
    return home


def rows(shell: Shell, *options: str) -> int:
    return int(shell("cache", "stats", "--json", *options).json["rows"])


# -- show --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["stats"], ["verify"], ["verify", "--repair"], ["gc"]])
def test_cache_commands_without_a_cache_are_usage_errors(arguments: list[str], shell: Shell) -> None:
    shell.commit("p1", source("docs/a.md", "a"))
    ended = shell("cache", *arguments)
    assert (ended.code, "there is no cache at" in ended.err) == (Exit.USAGE, True)
    assert not shell.home.exists()


def test_show_with_a_cached_reference_prints_its_vector(home: Home, shell: Shell) -> None:
    ref = f"cache:{home.encoder.fingerprint}/{text_hash('a boat').removeprefix('sha256:')}"
    assert shell("cache", "show", ref, "--json").json["vector"] == home.encoder.vector("a boat").tolist()
    ended = shell("cache", "show", ref)
    assert (ended.code, "8 dimensions, float32, norm 1.0000" in ended.out) == (Exit.OK, True)


def test_show_with_an_unknown_reference_is_a_usage_error(home: Home, shell: Shell) -> None:
    for ref in ("", "cache:12/34", f"cache:{'ab' * 32}/{'cd' * 32}"):
        ended = shell("cache", "show", ref)
        assert ended.code == Exit.USAGE
        assert "cache:FINGERPRINT/KEY" in ended.err or "is not cached" in ended.err


def test_long_texts_lists_chunks_with_their_partition(home: Home, shell: Shell) -> None:
    assert shell("cache", "long-texts", "--json").json == {"max_length": None, "length_unit": None, "chunks": []}
    tamper(home.folder / "vectors.db", "UPDATE model SET max_length = 4")
    hashes = [bytes.fromhex(text_hash(text).removeprefix("sha256:")) for text in ("a cat", "a cow", "a boat")]
    with VectorCache.open(home.folder / "vectors.db") as opened:
        vectors = home.encoder.encode(["a cat", "a cow", "a boat"])
        opened.put(home.encoder.info, hashes, vectors, [9, 9, 4], replaced=hashes)
    listed = shell("cache", "long-texts", "--json").json["chunks"]
    # "a cow" is not a current chunk, and four characters are not more than four
    assert [(chunk["partition"], chunk["text_hash"], chunk["length"]) for chunk in listed] == [
        ("p1", text_hash("a cat"), 9),
        ("p2", text_hash("a cat"), 9),
    ]
    ended = shell("cache", "long-texts")
    assert (ended.code, "2 chunks of more than 4 tokens" in ended.out) == (Exit.OK, True)


# -- check and shrink --------------------------------------------------------------------------------------------------


def test_verify_finds_a_bad_row_and_repair_drops_it(home: Home, shell: Shell) -> None:
    tamper(home.folder / "vectors.db", "UPDATE vector SET vector = zeroblob(32) WHERE id = 2")
    ended = shell("cache", "verify")
    assert (ended.code, "checksum mismatch: cache:" in ended.out) == (Exit.DRIFT, True)
    assert "1 bad row of 5; --repair drops them" in ended.out
    assert rows(shell) == 5
    ended = shell("cache", "verify", "--repair")
    assert (ended.code, "1 bad row of 5 dropped" in ended.out) == (Exit.OK, True)
    assert rows(shell) == 4


def damage(home: Home) -> bytes:
    """Damage the file so that SQLite cannot read it. Returns its content afterwards."""
    file = home.folder / "vectors.db"
    with VectorCache.open(file) as opened:
        opened.read("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(file.read_bytes())
    content[16:40] = b"\xff" * 24  # of the header
    file.write_bytes(content)
    return bytes(content)


def test_verify_reports_a_damaged_file_and_repair_sets_it_aside(home: Home, shell: Shell) -> None:
    content = damage(home)
    for arguments in (["cache", "stats"], ["cache", "verify"], ["plan"], ["verify", "--deep"]):
        ended = shell(*arguments)
        assert (ended.code, "chunksink cache verify --repair" in ended.err) == (Exit.DRIFT, True)
    assert (home.folder / "vectors.db").read_bytes() == content
    ended = shell("cache", "verify", "--repair")
    assert (ended.code, "vectors.db.damaged-1" in ended.out) == (Exit.OK, True)
    assert (home.folder / "vectors.db.damaged-1").read_bytes() == content
    assert shell("cache", "verify").code == Exit.OK
    assert rows(shell) == 0


def test_a_sync_sets_a_damaged_file_aside_and_reports_it(home: Home, shell: Shell) -> None:
    content = damage(home)
    report = shell("sync", "--json").json
    [kept] = report["embeddings"]["set_aside"]
    assert (shell.folder / kept).read_bytes() == content
    damage(home)
    assert "vectors.db.damaged-2" in shell("sync").err
    home.rebuild()
    assert rows(shell) == 4


def test_gc_drops_the_vectors_that_no_chunk_needs(home: Home, shell: Shell) -> None:
    ended = shell("cache", "gc", "--dry-run")
    assert (ended.code, "would drop 1 vector of 5, 32 bytes" in ended.out) == (Exit.OK, True)
    assert rows(shell) == 5
    ended = shell("cache", "gc")
    assert (ended.code, "dropping 1 vector of 5, 32 bytes" in ended.out) == (Exit.OK, True)
    assert shell("cache", "gc", "--json").json["rows"] == 0
    home.encoder.asked.clear()
    home.rebuild()
    assert home.encoder.asked == []


def test_gc_keeps_the_models_of_the_live_and_the_previous_build(home: Home, shell: Shell) -> None:
    first, second, third = home.encoder, HashEncoder(dimension=8, name="two"), HashEncoder(dimension=8, name="three")
    for encoder in (second, third):
        home.encoder = encoder
        home.rebuild()
    assert shell("cache", "gc", "--json").json["rows_by_model"] == {first.fingerprint: 5}
    assert rows(shell) == 8
    for file in home.folder.glob("state.db*"):
        file.unlink()
    assert shell("cache", "gc", "--json").json["rows"] == 0, "where no build is known, every model may be one's"


def test_gc_keeps_the_model_of_an_unfinished_build(home: Home, shell: Shell) -> None:
    """Otherwise the run that continues the build would compute its vectors again."""

    def fail() -> None:
        raise Unreachable("fts went away")

    first, second = home.encoder, HashEncoder(dimension=8, name="two")
    home.encoder = second
    with pytest.raises(Unreachable):
        home.rebuild(wrap=watching("fts", Moment("scan", 1, fail)))
    assert shell("cache", "gc", "--json").json["rows_by_model"] == {first.fingerprint: 1}, (
        "of the text that no chunk has"
    )
    second.asked.clear()
    home.rebuild()
    assert second.asked == []


def test_gc_when_a_partition_is_missing_or_invalid_drops_nothing(home: Home, shell: Shell) -> None:
    chunks = home.root.chunks_file("p1")
    whole = chunks.read_bytes()
    chunks.write_bytes(whole[:-5])
    assert shell("cache", "gc").code == Exit.INVALID_INPUT
    chunks.unlink()
    home.root.manifest_file("p1").rename(home.folder / "away")
    ended = shell("cache", "gc")
    assert (ended.code, "p1" in ended.err) == (Exit.INVALID_INPUT, True)
    assert rows(shell) == 5


def test_gc_that_would_empty_the_cache_is_refused(home: Home, shell: Shell) -> None:
    """The likely cause is a wrong folder in --chunks."""
    other = FolderRoot(shell.folder / "other")
    for key in ("p1", "p2"):
        commit(other, key, source(f"docs/{key}.md", f"quite another text in {key}"))
    ended = shell("cache", "gc", "--chunks", "other")
    assert (ended.code, "right folder?" in ended.err) == (Exit.USAGE, True)
    assert rows(shell) == 5


def test_gc_during_another_write_is_locked(home: Home, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with locks.writing(home.folder):
        monkeypatch.setattr(locks, "WAIT_SECONDS", 0.1)
        ended = shell("cache", "gc")
    assert (ended.code, "another run is writing" in ended.err) == (Exit.LOCKED, True)


# -- copy to other machines --------------------------------------------------------------------------------------------


def segments_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.arrow"))


@pytest.mark.parametrize("kind", ["folder", "bucket"])
def test_imported_cache_makes_the_same_index_without_encoding(
    kind: str, home: Home, shell: Shell, request: pytest.FixtureRequest
) -> None:
    place = "carried" if kind == "folder" else request.getfixturevalue("bucket")
    open_storage(place).write("README", b"ours")  # creates the bucket
    exported = shell("cache", "export", place, "--json")
    assert (exported.code, exported.json["rows"], exported.json["segments"], exported.json["written"]) == (0, 5, 1, 1)
    assert shell("cache", "export", place, "--json").json["written"] == 0
    for file in home.folder.glob("vectors.db*"):
        file.unlink()
    imported = shell("cache", "import", place, "--json")
    assert (imported.code, imported.json["added"], imported.json["bad"]) == (Exit.OK, 5, [])
    assert shell("cache", "import", place, "--json").json["known"] == 1
    home.encoder.asked.clear()
    home.rebuild()
    assert home.encoder.asked == []


def test_export_writes_the_models_of_the_index_or_those_that_were_named(home: Home, shell: Shell) -> None:
    other = HashEncoder(dimension=8, name="of no build")
    with VectorCache.open(home.folder / "vectors.db") as opened:
        opened.put(other.info, [b"k" * 32], other.encode(["a"]))
    assert shell("cache", "export", "own", "--json").json["rows"] == 5
    assert shell("cache", "export", "named", "--model", "of no build", "--json").json["rows"] == 1
    assert shell("cache", "export", "named", "--model", other.fingerprint[:12], "--json").json["rows"] == 1
    assert shell("cache", "export", "all", "--all", "--json").json["rows"] == 6
    assert shell("cache", "export", "both", "--all", "--model", "other").code == Exit.USAGE
    for name in ("unheard of", ""):
        assert shell("cache", "export", "none", "--model", name).code == Exit.USAGE
    assert not (shell.folder / "none").exists()


def test_export_and_import_report_what_they_left_out(home: Home, shell: Shell) -> None:
    tamper(home.folder / "vectors.db", "UPDATE vector SET vector = zeroblob(32) WHERE id = 2")
    exported = shell("cache", "export", "carried", "--json")
    assert (exported.code, exported.json["rows"], exported.json["bad_rows"]) == (Exit.DRIFT, 4, 1)
    [file] = segments_in(shell.folder / "carried")
    file.write_bytes(file.read_bytes()[:-1])
    imported = shell("cache", "import", "carried", "--json")
    assert (imported.code, [bad["name"] for bad in imported.json["bad"]]) == (Exit.DRIFT, [file.name])


def test_import_without_segments_is_a_usage_error(shell: Shell) -> None:
    assert shell("cache", "import", "nowhere").code == Exit.USAGE
    assert not shell.home.exists()


def test_import_into_a_new_home_creates_its_cache(home: Home, shell: Shell) -> None:
    shell("cache", "export", "carried")
    assert shell("cache", "import", "carried", "--home", "second").code == Exit.OK
    assert rows(shell, "--home", "second") == 5


def test_gc_removes_imported_segments_of_the_home_and_no_others(home: Home, shell: Shell) -> None:
    waiting = home.folder / "segments"
    shell("cache", "export", str(waiting), "--all")
    with VectorCache.open(home.folder / "vectors.db") as opened:
        import_segments(opened, open_storage(str(waiting)))
    other = HashEncoder(dimension=8, name="not imported yet")
    write_segment(open_storage(str(waiting)), other.info, [b"k" * 32], other.encode(["a"]))
    assert shell("cache", "gc", "--dry-run", "--json").json["segments"] == 1
    assert len(segments_in(waiting)) == 2
    assert shell("cache", "gc").code == Exit.OK
    assert len(segments_in(waiting)) == 1
