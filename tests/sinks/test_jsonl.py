"""What the sink of plain files promises beyond the suite: kills and faults at every step, strangers, the link."""

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from chunkbus.canonical import canonical_json
from settings.config import ConfigError
from sinks.conformance.samples import family, held, marker, wanted, with_vectors
from sinks.document import Family
from sinks.errors import BuildBroken, BuildMissing, Refused, SinkError, Transient
from sinks.jsonl import FAMILIES, LINK, MARKER, PENDING, JsonlBuild, JsonlSink, open_sink
from sinks.sink import NO_PARENT, Marker, Sink

REPOSITORY = Path(__file__).resolve().parents[2]

OLD, NEW = family("a", ["old one", "old two"], version="1"), family("a", ["new"] * 3, version="2")
GOING, ADDED, UNTOUCHED = family("going", ["x", "y"]), family("added", ["z"]), family("untouched", ["u"])
BEFORE, AFTER = [OLD, GOING, UNTOUCHED], [NEW, ADDED, UNTOUCHED]


@pytest.fixture
def sink(tmp_path: Path) -> JsonlSink:
    return JsonlSink(tmp_path / "jsonl")


@pytest.fixture
def build(sink: JsonlSink) -> Iterator[JsonlBuild]:
    build = sink.create(Marker("home", "b1", 1))
    yield build
    build.close()


@pytest.fixture
def folder(tmp_path: Path, build: JsonlBuild) -> Path:
    return tmp_path / "jsonl" / "b1"


def fill(build: JsonlBuild, families: list[Family]) -> None:
    build.replace(families)
    assert build.flush() == []


def change(build: JsonlBuild) -> None:
    """From BEFORE to AFTER."""
    build.replace([NEW, ADDED])
    build.delete([GOING.parent_id])
    assert build.flush() == []


def file_of(folder: Path, one: Family) -> Path:
    return folder / FAMILIES / one.parent_id[:2] / f"{one.parent_id}.jsonl"


def content_of(one: Family) -> bytes:
    return b"".join(canonical_json(document.fields()) + b"\n" for document in one.documents)


def visible(folder: Path) -> dict[str, bytes]:
    """What another system picks up."""
    return {path.name: path.read_bytes() for path in folder.rglob("*.jsonl")}


def as_files(families: list[Family]) -> dict[str, bytes]:
    return {f"{one.parent_id}.jsonl": content_of(one) for one in families}


def pending(folder: Path) -> list[Path]:
    return list((folder / PENDING).iterdir()) if (folder / PENDING).is_dir() else []


def is_between(folder: Path) -> bool:
    """Every family is wholly as before or wholly as after."""
    found = visible(folder)
    choices = [(OLD, NEW), (GOING, None), (None, ADDED), (UNTOUCHED, UNTOUCHED)]
    expected = 0
    for before, after in choices:
        name = file_of(folder, before or after).name  # type: ignore[arg-type]
        allowed = [None if one is None else content_of(one) for one in (before, after)]
        assert found.get(name) in allowed, f"{name} is neither the old family nor the new one"
        expected += name in found
    return len(found) == expected


# --- the files ------------------------------------------------------------------------------------------------


def test_a_family_is_a_file_of_canonical_lines_in_order(build: JsonlBuild, folder: Path) -> None:
    one = family("a", ["first", "second \u2028 line\nbreak", "third"], metadata={"tags": ["x"], "title": "Ünï"})
    fill(build, [one])
    assert file_of(folder, one).read_bytes() == content_of(one)
    lines = [orjson.loads(line) for line in file_of(folder, one).read_bytes().splitlines()]
    assert [line["id"] for line in lines] == [document.id for document in one.documents]
    assert orjson.loads((folder / MARKER).read_bytes()) == {
        "home_id": "home",
        "build_id": "b1",
        "projection_version": 1,
    }
    mask = os.umask(0)
    os.umask(mask)
    assert file_of(folder, one).stat().st_mode & 0o777 == 0o666 & ~mask, "other systems must be able to read it"


def test_nothing_is_seen_before_flush(build: JsonlBuild, folder: Path) -> None:
    fill(build, BEFORE)
    build.replace([NEW, ADDED])
    build.delete([GOING.parent_id])
    assert visible(folder) == as_files(BEFORE)
    assert held(build) == wanted(BEFORE)
    build.flush()
    assert visible(folder) == as_files(AFTER)
    assert pending(folder) == []


def test_what_the_last_word_replaced_leaves_no_file(build: JsonlBuild, folder: Path) -> None:
    build.replace([OLD])
    build.replace([NEW, OLD, NEW])
    assert len(pending(folder)) == 1
    build.delete([NEW.parent_id])
    assert pending(folder) == []
    build.replace([OLD])
    build.close()
    build.close()
    assert (pending(folder), visible(folder)) == ([], {})


def test_a_moved_id_stands_in_both_files_until_its_old_family_changes(build: JsonlBuild) -> None:
    moved = with_vectors([msgspec.structs.replace(NEW.documents[0], id=GOING.documents[0].id)])
    fill(build, [GOING])
    fill(build, [moved])
    assert held(build) == wanted([GOING, moved])
    build.delete([GOING.parent_id])
    build.flush()
    assert held(build) == wanted([moved])


def test_only_a_writer_removes_what_a_kill_left(sink: JsonlSink, build: JsonlBuild, folder: Path) -> None:
    build.replace([NEW])
    other = sink.open("b1")  # somebody verifies meanwhile
    assert (held(other), other.count()) == ([], 0)
    other.close()
    build.flush()
    (folder / PENDING / "left by a kill").write_bytes(b"half a li")
    again = sink.open("b1")
    fill(again, [ADDED])
    assert pending(folder) == []
    assert held(again) == wanted([NEW, ADDED])


def test_a_document_that_is_no_json_is_left_out_alone(build: JsonlBuild, folder: Path) -> None:
    fill(build, [OLD])
    spoilt = msgspec.structs.replace(NEW.documents[1], text="lone \ud800")
    build.replace([with_vectors_of([NEW.documents[0], spoilt, NEW.documents[2]]), ADDED])
    [refused] = build.flush()
    assert (refused.id, refused.parent_id) == (spoilt.id, spoilt.parent_id)
    assert build.flush() == []
    assert held(build) == sorted(row for row in wanted([NEW, ADDED]) if row[0] != spoilt.id)
    build.replace([with_vectors_of([spoilt])])
    assert [one.id for one in build.flush()] == [spoilt.id]
    assert not file_of(folder, OLD).exists(), "the old version must go"


def test_one_replaced_in_time_was_not_refused(build: JsonlBuild) -> None:
    spoilt = msgspec.structs.replace(NEW.documents[1], text="lone \ud800")
    build.replace([with_vectors_of([spoilt])])
    build.replace([NEW])
    assert build.flush() == []


def with_vectors_of(documents: list[Any]) -> Family:
    return Family(documents, None)


PATHS = [
    "",
    ".",
    "..",
    "../x",
    "../../outside",
    "ab/../../../../outside",
    "/etc/x",
    "a/b",
    "x\0y",
    "\ud800",
    "A" * 64,
    "a" * 64 + "\n",
]


@pytest.mark.parametrize("parent_id", [*PATHS, "a" * 63, "a" * 65, "é" * 64, "١" * 64])
def test_a_parent_id_is_never_a_path(build: JsonlBuild, folder: Path, tmp_path: Path, parent_id: str) -> None:
    (tmp_path / "outside.jsonl").write_text("x")
    (tmp_path / "x.jsonl").write_text("x")
    everything = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    odd = Family([msgspec.structs.replace(document, parent_id=parent_id) for document in NEW.documents])
    build.replace([odd, ADDED])
    assert {one.id for one in build.flush()} == {document.id for document in odd.documents}
    build.delete([parent_id, ADDED.parent_id])
    assert build.flush() == []
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == everything


def test_readers_never_see_half_a_family_and_never_none(build: JsonlBuild, folder: Path) -> None:
    sizes = {str(version): 1 + version * 7 % 40 for version in range(60)}
    versions = [family("a", [f"{version} " + "word " * 300] * size, version=version) for version, size in sizes.items()]
    whole = {content_of(one) for one in versions}
    fill(build, versions[:1])
    path, done, reads, wrong = file_of(folder, OLD), threading.Event(), [0, 0], []

    def look(reader: int) -> None:
        while not done.is_set():
            try:
                if path.read_bytes() not in whole:
                    wrong.append("half")
            except FileNotFoundError:
                wrong.append("absent")
            reads[reader] += 1

    threads = [threading.Thread(target=look, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for one in versions:
        fill(build, [one])
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert min(reads) > 20


# --- kills and faults, at every step --------------------------------------------------------------------------


@contextmanager
def steps(at: Callable[[str, Callable[[], Any]], Any]) -> Iterator[None]:
    """Calls `at(name, go)` instead of each thing that is done to the disk; `go` does it."""
    names = ["fsync", "replace", "rename", "unlink", "mkdir", "symlink"]
    real = {name: getattr(os, name) for name in names}
    real_open = Path.open

    def wrapped(name: str) -> Any:
        return lambda *args, **options: at(name, lambda: real[name](*args, **options))

    class Writer:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> "Writer":
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def writelines(self, lines: Any) -> None:
            """In two halves, as disks do."""
            content = b"".join(lines)
            for half in (content[: len(content) // 2], content[len(content) // 2 :]):
                at("write", lambda half=half: (self.file.write(half), self.file.flush()))  # type: ignore[misc]

    def opened(self: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        file = real_open(self, mode, *args, **options)
        return Writer(file) if "x" in mode or "w" in mode else file

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(os, name, wrapped(name))
        patch.setattr(Path, "open", opened)
        yield


def prepared(root: Path) -> None:
    build = JsonlSink(root).create(Marker("home", "b1", 1))
    fill(build, BEFORE)
    build.close()


def killed_everywhere(template: str, into: str) -> None:
    """Run by a process of its own: its n-th child kills itself before its n-th step."""
    number = 0
    while True:
        number += 1
        root = Path(into) / str(number)
        shutil.copytree(template, root)
        child = os.fork()
        if child == 0:
            seen: list[str] = []

            def at(name: str, go: Callable[[], Any], seen: list[str] = seen, root: Path = root, n: int = number) -> Any:
                seen.append(name)
                if len(seen) == n:
                    (root / "killed before").write_text(" ".join(seen), encoding="utf-8")
                    os.kill(os.getpid(), signal.SIGKILL)
                return go()

            build = JsonlSink(root).open("b1")
            with steps(at):
                change(build)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert status == 0
            return


def test_killed_at_any_step_it_leaves_whole_families_and_the_next_run_ends_it(tmp_path: Path) -> None:
    prepared(tmp_path / "template")
    (tmp_path / "killed").mkdir()
    command = "import sys; from tests.sinks.test_jsonl import killed_everywhere; killed_everywhere(*sys.argv[1:])"
    arguments = [str(tmp_path / "template"), str(tmp_path / "killed")]
    subprocess.run([sys.executable, "-c", command, *arguments], cwd=REPOSITORY, check=True, timeout=120)
    roots = sorted((tmp_path / "killed").iterdir(), key=lambda path: int(path.name))
    stories = []
    for root in roots[:-1]:
        story = (root / "killed before").read_text(encoding="utf-8").split()
        stories.append(story)
        folder = root / "b1"
        assert is_between(folder), story
        if "replace" not in story[:-1] and "unlink" not in story[:-1]:
            assert visible(folder) == as_files(BEFORE), "seen before flush"
        build = JsonlSink(root).open("b1")
        build.marker()
        change(build)
        assert visible(folder) == as_files(AFTER), story
        assert held(build, content=True) == wanted(AFTER)
        assert pending(folder) == []
        build.close()
    assert visible(roots[-1] / "b1") == as_files(AFTER)
    assert {story[-1] for story in stories} >= {"write", "fsync", "replace", "unlink", "mkdir"}
    assert any(story[-1] == "fsync" and "unlink" in story for story in stories), "none in the middle of flush"


@pytest.mark.parametrize("landed", [False, True], ids=["failed", "landed and failed"])
def test_a_disk_that_fails_at_any_step_leaves_whole_families(tmp_path: Path, landed: bool) -> None:
    prepared(tmp_path / "template")
    failed = set()
    for number in range(1, 200):
        root = tmp_path / str(number)
        shutil.copytree(tmp_path / "template", root)
        folder, build = root / "b1", JsonlSink(root).open("b1")
        seen: list[str] = []

        def at(name: str, go: Callable[[], Any], number: int = number, seen: list[str] = seen) -> Any:
            seen.append(name)
            if len(seen) != number:
                return go()
            if landed:
                go()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        calls: list[Callable[[], object]] = [
            partial(build.replace, [NEW, ADDED]),
            partial(build.delete, [GOING.parent_id]),
            build.flush,
        ]
        with steps(at):
            for call in calls:
                try:
                    call()
                except Transient as error:
                    failed.add(seen[number - 1])
                    assert "make room" in str(error)
                    assert str(folder) in str(error)
                    assert is_between(folder), seen
                    if call != calls[-1]:
                        assert visible(folder) == as_files(BEFORE), "seen before flush"
                    # What failed may be repeated; what nobody knows about is asked for anew.
                    change(build) if landed else call()
        assert visible(folder) == as_files(AFTER), seen
        assert pending(folder) == []
        if len(seen) < number:
            break
    assert failed >= {"write", "fsync", "replace", "unlink"}


@pytest.mark.parametrize("act", ["create", "flip", "drop"])
def test_a_disk_that_fails_at_any_step_leaves_no_half_build(tmp_path: Path, act: str) -> None:
    signed = Marker("home", "b2", 1)
    calls: dict[str, Callable[[JsonlSink], Any]] = {
        "create": lambda sink: sink.create(signed),
        "flip": lambda sink: sink.flip("b1", "b2"),
        "drop": lambda sink: sink.drop("b1"),
    }
    for number in range(1, 100):
        root = tmp_path / str(number)
        prepared(root)
        sink = JsonlSink(root)
        seen: list[str] = []
        sink.flip(None, "b1")
        if act != "create":
            sink.create(signed)

        def at(name: str, go: Callable[[], Any], number: int = number, seen: list[str] = seen) -> Any:
            seen.append(name)
            if len(seen) == number:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return go()

        with steps(at):
            try:
                calls[act](sink)
            except Transient:
                for found in sink.builds():
                    assert sink.open(found).marker() == Marker("home", found, 1), seen
                link = root / LINK
                assert link.is_dir() or (act == "drop" and not link.is_symlink()), "the link leads nowhere"
        calls[act](sink)
        assert sink.builds() == {"create": ["b1", "b2"], "flip": ["b1", "b2"], "drop": ["b2"]}[act]
        if act == "flip":
            assert str((root / LINK).readlink()) == "b2"
        sink.drop("b2")
        assert not [path for path in root.iterdir() if path.name.startswith(".")], seen
        if len(seen) < number:
            return
    pytest.fail("it never completes")


def test_all_is_synced_before_it_counts(build: JsonlBuild, folder: Path) -> None:
    """No file is renamed into its place before its content is on the disk, and every folder that changed follows."""
    fill(build, BEFORE)
    synced: list[int] = []
    changed: dict[int, int] = {}  # a folder, and how much was synced before its last change
    fsync, replace, unlink = os.fsync, os.replace, os.unlink

    def noted_fsync(handle: int) -> None:
        fsync(handle)
        synced.append(os.fstat(handle).st_ino)

    def noted_replace(old: Path, new: Path) -> None:
        assert Path(old).stat().st_ino in synced, "renamed before its content was on the disk"
        replace(old, new)
        changed[Path(new).parent.stat().st_ino] = len(synced)

    def noted_unlink(path: Path) -> None:
        unlink(path)
        changed[Path(path).parent.stat().st_ino] = len(synced)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", noted_fsync)
        patch.setattr(os, "replace", noted_replace)
        patch.setattr(os, "unlink", noted_unlink)
        change(build)
    assert len(changed) == 3
    for inode, moment in changed.items():
        assert inode in synced[moment:], "a folder that changed was not synced afterwards"
    assert (folder / FAMILIES).stat().st_ino in synced, "new folders are entries of this one"


@pytest.mark.parametrize(
    ("code", "kind", "remedy"),
    [
        (errno.ENOSPC, Transient, "make room"),
        (errno.EDQUOT, Transient, "make room"),
        (errno.EIO, Transient, "look after that disk"),
        (errno.EROFS, Refused, "permissions"),
        (errno.EACCES, Refused, "permissions"),
    ],
)
def test_errors_say_what_to_do(
    build: JsonlBuild, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[SinkError], remedy: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(kind, match=remedy):
        build.replace([NEW])


def test_an_unknown_error_keeps_its_traceback(build: JsonlBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EDOM, "nobody expects this")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="nobody expects this"):
        build.replace([NEW])


def test_a_file_that_grew_too_large_leaves_the_old_family(build: JsonlBuild, folder: Path) -> None:
    """A real fault in the middle of a write."""
    fill(build, [OLD])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(Transient, match="make room"):
            build.replace([ADDED, family("a", ["new " * 100_000], version="2")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert visible(folder) == as_files([OLD])
    assert len(pending(folder)) == 1, "half a file takes room"
    fill(build, [NEW, ADDED])
    assert held(build) == wanted([NEW, ADDED])


def test_a_read_only_folder_is_refused() -> None:
    place = Path(tempfile.mkdtemp())  # a folder that also another user can reach
    mine = os.geteuid()
    try:
        prepared(place)
        folder = place / "b1"
        for path in (place, *place.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        if mine == 0:
            os.seteuid(65534)  # root may write everywhere
        sink = JsonlSink(place)
        build = sink.open("b1")
        assert held(build) == wanted(BEFORE), "reading needs no right to write"
        for call in (
            lambda: build.replace([NEW]),
            lambda: build.sign(marker()),
            lambda: sink.create(marker()),
            lambda: sink.flip(None, "b1"),
            lambda: sink.drop("b1"),
        ):
            with pytest.raises(Refused, match="correct its permissions"):
                call()
        build.delete([OLD.parent_id])
        with pytest.raises(Refused, match="correct its permissions"):
            build.flush()
        assert visible(folder) == as_files(BEFORE)
        os.seteuid(mine)
        file_of(folder, OLD).parent.chmod(0o000)
        if mine == 0:
            os.seteuid(65534)
        with pytest.raises(Refused, match="correct its permissions"):
            held(build)  # what cannot be looked at is not absent
    finally:
        os.seteuid(mine)
        for path in [place, *place.rglob("*")]:
            path.chmod(0o755)
        for path in place.rglob("*"):
            path.chmod(0o755)
        shutil.rmtree(place)


# --- what somebody else did -----------------------------------------------------------------------------------


def test_files_of_strangers_are_seen_and_can_go(build: JsonlBuild, folder: Path, tmp_path: Path) -> None:
    fill(build, [OLD, ADDED])
    mine, families = file_of(folder, OLD), folder / FAMILIES
    (families / "notes.txt").write_text("not\neven\nJSON")
    (families / "deep" / "er").mkdir(parents=True)
    shutil.copy(mine, families / "deep" / "er" / mine.name)
    shutil.copy(mine, mine.with_name("copy.jsonl"))
    shutil.copy(mine, families / mine.name)
    other = "f" * 64 if OLD.parent_id[0] != "f" else "e" * 64
    shutil.copy(mine, mine.with_name(f"{other}.jsonl"))
    (mine.parent / f"{mine.name[:2]}{'0' * 62}.jsonl").symlink_to(mine)
    (families / "linked").symlink_to(tmp_path)
    os.mkfifo(families / "pipe.jsonl")
    (Path(os.fsdecode(os.fsencode(families) + b"/caf\xe9.jsonl"))).write_text("x")
    (mine.parent / ".hidden.jsonl.swp").write_text("x")
    for content in (False, True):
        found = list(build.scan(content=content))
        strangers = [stored for stored in found if stored.parent_id == NO_PARENT]
        assert sorted(stored.hashes() for stored in found if stored not in strangers) == wanted([OLD, ADDED])
        assert len(strangers) == len({stored.id for stored in strangers}) == 9
        assert all(stored.hashes()[2:] == ("", "", "") and stored.document is None for stored in strangers)
        assert {"families/notes.txt", "families/caf\\xe9.jsonl"} <= {stored.id for stored in strangers}
        assert build.count() == len(found)
    "".join(stored.id for stored in strangers).encode()
    build.delete([NO_PARENT])
    assert build.count() == len(found), "not before flush"
    build.flush()
    assert held(build) == wanted([OLD, ADDED])
    assert visible(folder) == as_files([OLD, ADDED])
    assert tmp_path.is_dir()


def line_of(**changes: Any) -> bytes:
    return orjson.dumps(NEW.documents[1].fields() | changes)


@pytest.mark.parametrize(
    "line",
    [
        b'{"id": "cut o',
        b"\0" * 500,
        b"[]",
        b"null",
        b"5",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        line_of(text=None),
        line_of(year="x"),
        line_of(char_start=2**60),
        line_of(id=7),
    ],
)
def test_a_broken_line_is_seen_as_its_familys_and_can_be_mended(build: JsonlBuild, folder: Path, line: bytes) -> None:
    fill(build, [NEW, ADDED])
    lines = file_of(folder, NEW).read_bytes().splitlines()
    lines[1] = line
    file_of(folder, NEW).write_bytes(b"\n\n".join(lines))  # blank lines are nobody
    held(build)
    found = [stored for stored in build.scan(content=True) if stored.parent_id == NEW.parent_id]
    assert [stored.document is None for stored in found] == [False, True, False]
    assert found[1].hashes()[3:] == ("", "")
    assert found[1].id in (NEW.documents[1].id, f"families/{NEW.parent_id[:2]}/{NEW.parent_id}.jsonl:3")
    assert build.count() == 4
    fill(build, [NEW])
    assert held(build, content=True) == wanted([NEW, ADDED])


def test_a_changed_text_is_noticed(build: JsonlBuild, folder: Path) -> None:
    fill(build, [NEW])
    path = file_of(folder, NEW)
    path.write_bytes(path.read_bytes().replace(b'"text":"new"', b'"text":"old"', 1))
    assert held(build, content=True) != wanted([NEW])
    assert held(build) == wanted([NEW]), "a plain scan reads what is noted"


def test_a_folder_in_the_way_is_refused(build: JsonlBuild, folder: Path) -> None:
    file_of(folder, NEW).mkdir(parents=True)
    build.replace([ADDED, NEW])
    with pytest.raises(Refused, match="move away"):
        build.flush()
    with pytest.raises(Refused, match="move away"):
        build.flush()
    file_of(folder, NEW).rmdir()
    build.flush()
    assert held(build) == wanted([NEW, ADDED])


def test_what_another_process_took_away_is_not_confirmed(build: JsonlBuild, folder: Path) -> None:
    build.replace([NEW])
    shutil.rmtree(folder / PENDING)
    for _ in range(2):
        with pytest.raises(BuildBroken, match="run again or rebuild"):
            build.flush()
    fill(build, [NEW])
    assert held(build) == wanted([NEW])
    shutil.rmtree(folder / FAMILIES)
    with pytest.raises(BuildBroken, match="run again or rebuild"):
        held(build)


def test_a_damaged_marker_is_nobodys(sink: JsonlSink, build: JsonlBuild, folder: Path) -> None:
    for damage in (b"", b"{", b'{"home_id": 5}', b"[]", b'{"home_id":"a","build_id":"b"}'):
        (folder / MARKER).write_bytes(damage)
        with pytest.raises(BuildBroken, match="rebuild"):
            build.marker()
        with pytest.raises(BuildBroken, match="rebuild"):
            sink.create(Marker("other", "b1", 1))
    build.sign(Marker("mine", "b1", 2))
    assert build.marker() == Marker("mine", "b1", 2)
    (folder / MARKER).unlink()
    assert build.marker() is None
    assert sink.create(Marker("other", "b1", 1)).marker() == Marker("other", "b1", 1)


# --- the link -------------------------------------------------------------------------------------------------


def test_the_link_leads_to_the_live_build(sink: JsonlSink, build: JsonlBuild, tmp_path: Path) -> None:
    root = tmp_path / "jsonl"
    sink.create(Marker("home", "b2", 1)).close()
    sink.flip(None, "b1")
    assert sink.builds() == ["b1", "b2"]
    fill(build, [OLD])
    assert visible(root / LINK / FAMILIES) == as_files([OLD])
    for old, new in ((None, "b2"), ("b2", "b2x"), ("b0", "b2")):
        with pytest.raises(Refused):
            sink.flip(old, new)
        assert str((root / LINK).readlink()) == "b1"
    (root / ".current").symlink_to("left by a kill")
    sink.flip("b1", "b2")
    sink.flip("b1", "b2")
    sink.flip("b2", "b2")
    assert str((root / LINK).readlink()) == "b2"
    sink.flip("b2", "b1")
    root.rename(tmp_path / "moved")
    assert visible(tmp_path / "moved" / LINK / FAMILIES) == as_files([OLD])
    assert sorted(path.name for path in (tmp_path / "moved").iterdir()) == ["b1", "b2", LINK]


def test_the_link_is_no_build(sink: JsonlSink, build: JsonlBuild, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be called 'current'"):
        sink.create(Marker("home", LINK, 1))
    sink.flip(None, "b1")
    with pytest.raises(BuildMissing, match="a link"):
        sink.open(LINK)
    with pytest.raises(BuildMissing, match="a link"):
        sink.flip("b1", LINK)
    sink.drop(LINK)
    assert (tmp_path / "jsonl" / LINK / MARKER).exists()


def test_dropping_the_live_build_takes_the_link_along(sink: JsonlSink, build: JsonlBuild, tmp_path: Path) -> None:
    sink.create(Marker("home", "b2", 1)).close()
    sink.flip(None, "b2")
    sink.drop("b1")
    assert str((tmp_path / "jsonl" / LINK).readlink()) == "b2"
    sink.drop("b2")
    assert list((tmp_path / "jsonl").iterdir()) == []
    JsonlSink(tmp_path / "nowhere").drop("b1")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("what", ["file", "folder", "elsewhere", "dangling"])
def test_what_bears_the_links_name_is_not_overwritten(
    sink: JsonlSink, build: JsonlBuild, tmp_path: Path, what: str
) -> None:
    link = tmp_path / "jsonl" / LINK
    if what == "file":
        link.write_text("precious")
    elif what == "folder":
        link.mkdir()
    else:
        link.symlink_to(tmp_path if what == "elsewhere" else "b0")
    before = os.lstat(link)
    with pytest.raises(Refused, match=r"correct the link|move away"):
        sink.flip(None, "b1")
    assert os.lstat(link).st_ino == before.st_ino


def test_readers_of_the_link_are_never_left_alone(sink: JsonlSink, build: JsonlBuild, tmp_path: Path) -> None:
    fill(build, [OLD])
    second = sink.create(Marker("home", "b2", 1))
    fill(second, [OLD])
    sink.flip(None, "b1")
    done, reads, absent = threading.Event(), [0], []
    path = file_of(tmp_path / "jsonl" / LINK, OLD)

    def look() -> None:
        while not done.is_set():
            reads[0] += 1
            if not path.exists():
                absent.append(reads[0])

    thread = threading.Thread(target=look)
    thread.start()
    for number in range(200):
        old, new = ("b1", "b2") if number % 2 == 0 else ("b2", "b1")
        sink.flip(old, new)
    done.set()
    thread.join()
    assert absent == []
    assert reads[0] > 50


# --- settings -------------------------------------------------------------------------------------------------


def test_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_sink(tmp_path, {}).create(Marker("home", "b1", 1))
    assert (tmp_path / "jsonl" / "b1" / MARKER).exists()
    monkeypatch.chdir(tmp_path)
    sink: Sink = open_sink(tmp_path, {"folder": "elsewhere"})
    monkeypatch.chdir("/")
    sink.create(Marker("home", "b1", 1))
    assert (tmp_path / "elsewhere" / "b1" / MARKER).exists()
    assert (sink.name, sink.wants_vectors) == ("jsonl", False)
    for wrong, says in (({"foldr": "x"}, "foldr"), ({"folder": 5}, "folder")):
        with pytest.raises(ConfigError, match=says) as raised:
            open_sink(tmp_path, wrong)
        assert "there are: folder" in str(raised.value)
