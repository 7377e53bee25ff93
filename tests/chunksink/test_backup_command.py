"""`chunksink backup` and `restore`: complete or nothing, during other runs, and beside engines with newer content."""

import gzip
import io
import json
import os
import shutil
import subprocess
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chunksink import backup as module
from chunksink.chunkbus.errors import NewerStore, StoreUnreadable
from chunksink.command_line.exits import Exit
from chunksink.ingest.store import ingest_lock
from chunksink.rebuild.errors import BackupUnreadable, HomeNotEmpty
from chunksink.rebuild.locks import writing
from chunksink.rebuild.state import State
from tests.chunksink.shell import Models, Shell, write
from tests.support.bus import FEBRUARY, MARCH, source

A, B, C = source("a.md", "a cat", "a mat"), source("b.md", "a boat"), source("c.md", "a cow")
RECORDS = ("home.id", "ingest.db", "state.db", "vectors.db")


def saved(shell: Shell, name: str = "backup.tar.gz") -> Path:
    file = shell.folder / name
    ended = shell("backup", str(file))
    assert (ended.code, ended.err) == (Exit.OK, "")
    return file


def members(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def members_or_none(file: Path) -> dict[str, bytes] | None:
    try:
        return members(file)
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error):
        return None


def packed(file: Path, content: dict[str, bytes], change: Callable[[tarfile.TarInfo], object] = lambda _: None) -> Path:
    with tarfile.open(file, "w:gz") as tar:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            change(member)
            tar.addfile(member, io.BytesIO(data))
    return file


def files(home: Path) -> dict[str, bytes]:
    """All files of a home except locks."""
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file() and path.suffix != ".lock"}


def test_backup_has_records_cache_ledger_and_runs_but_no_engine(shell: Shell) -> None:
    write(shell, "notes/a.md", "# A\n\nA cat.\n")
    assert shell("ingest", "notes", "--sync").code == Exit.OK
    file = saved(shell)
    content = members(file)
    manifest = json.loads(content.pop("manifest.json"))
    assert {name for name in content if not name.startswith("runs/")} == set(RECORDS)
    assert {name for name in content if name.startswith("runs/")} == {
        f"runs/{path.name}" for path in (shell.home / "runs").iterdir() if b'"backup"' not in path.read_bytes()
    }
    assert set(manifest["digests"]) == set(content)
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in shell.folder.iterdir() if "partial" in path.name] == []


def test_restored_home_answers_and_has_nothing_to_do(shell: Shell, models: Models) -> None:
    shell.synced(p1=[A, B])
    digests, live = shell.digests(), shell.live()
    file = saved(shell)
    models.take_texts()
    shutil.rmtree(shell.home)
    ended = shell("restore", str(file), "--json")
    assert (ended.code, ended.json.get("replaced")) == (Exit.OK, None), ended
    assert sorted(ended.json["digests"])[0] == "home.id"
    assert shell.live() == live
    found = shell("status", "--json").json
    assert (found["is_restored"], found["current"]) == (True, False), "only records were restored, no engine"
    assert shell("status", "--check", "--max-lag", "0s").code == 1
    assert shell("sync").code == Exit.OK, "the engines in the home are lost, so they are written again"
    found = shell("status", "--json").json
    assert (found["is_restored"], found["current"]) == (False, True)
    assert shell.digests() == digests
    assert models.take_texts() == [], "every vector came from the backup"
    assert not (shell.home / "restore.partial").exists()
    assert [run.split()[1] for run in shell("runs").out.splitlines() if "restore" in run]


@pytest.mark.promise(1)
@pytest.mark.promise(4)
@pytest.mark.parametrize("moved_on", ["synced", "rebuilt twice", "withdrawn"])
def test_restore_beside_engines_that_moved_on_is_repaired_by_the_next_sync(moved_on: str, shell: Shell) -> None:
    """Real fts and embedded Chroma, whose data stays in the home."""
    shell.synced(p1=[A, B], p2=[C])
    file = saved(shell)
    shell.commit("p1", source("a.md", "a tapir", "a zebra", "a lemur", version="2", at=FEBRUARY), at=FEBRUARY)
    shell.commit("p3", source("d.md", "a dog"), at=FEBRUARY)
    for command in ("sync",) if moved_on == "synced" else ("sync", "rebuild", "rebuild"):
        assert shell(command).code == Exit.OK
    if moved_on == "withdrawn":
        shell.commit("p3", at=MARCH)
        assert shell("sync").code == Exit.OK
    assert shell("restore", str(file), "--force").code == Exit.OK
    assert shell("sync").code == Exit.OK
    assert shell("verify").code == Exit.OK
    assert shell("verify", "--deep", "--repair").code == Exit.OK, "it computes the vectors that the old cache lacks"
    digests = shell.digests()
    assert shell("sync", "--json").json["chunks"] == {"written": 0, "deleted": 0}
    fresh = shell("sync", "--home", "fresh")
    assert fresh.code == Exit.OK
    assert digests == shell.digests("--home", "fresh")
    assert shell("rebuild").code == Exit.OK, "it removes builds that the restored records do not know"
    assert shell.digests() == digests


@pytest.mark.promise(4)
@pytest.mark.parametrize("rebuilds", [0, 1, 2])
def test_restore_beside_a_server_that_moved_on_is_repaired_by_the_next_sync(
    rebuilds: int, public_index: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real Meilisearch, whose public index shows a build that the restored records do not know."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch")
    shell.synced(p1=[A, B])
    file = saved(shell)
    shell.commit("p1", source("a.md", "a tapir", "a zebra", "a lemur", version="2", at=FEBRUARY), *[B], at=FEBRUARY)
    for command in ("sync", *["rebuild"] * rebuilds):
        assert shell(command).code == Exit.OK
    assert shell("restore", str(file), "--force").code == Exit.OK
    assert shell("sync").code == Exit.OK
    assert len(shell.digests()) == 1
    assert {document.text for document in public_index.get_documents().results} == {
        "a tapir",
        "a zebra",
        "a lemur",
        "a boat",
    }


def test_restore_refuses_a_home_with_records_and_keeps_what_force_replaces(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[A])
    file = saved(quick_shell)
    quick_shell.commit("p1", source("a.md", "a tapir", version="2", at=FEBRUARY), at=FEBRUARY)
    assert quick_shell("sync").code == Exit.OK
    before = files(quick_shell.home)
    ended = quick_shell("restore", str(file))
    assert (ended.code, "--force" in ended.err) == (Exit.USAGE, True)
    assert files(quick_shell.home) == before
    replaced = Path(quick_shell("restore", str(file), "--force", "--json").json["replaced"])
    assert (replaced / "state.db").read_bytes() == before[str(quick_shell.home / "state.db")]
    assert sorted(path.name for path in replaced.iterdir()) == ["home.id", "runs", "state.db", "vectors.db"]
    with State(replaced) as state:
        assert state.live_or_none() is not None, "the replaced records are whole"


def test_backup_while_syncs_write_is_consistent(quick_shell: Shell, tmp_path: Path) -> None:
    """Each backup restores to records that pass their own checks and that the next sync completes."""
    quick_shell.synced(p1=[A])
    written: list[Path] = []
    stop = threading.Event()

    def back_up() -> None:
        while not stop.is_set() or not written:
            file = tmp_path / f"{len(written)}.tar.gz"
            module.backup(quick_shell.home, file)
            written.append(file)

    thread = threading.Thread(target=back_up)
    thread.start()
    try:
        for number in range(6):
            quick_shell.commit("p2", *(source(f"{n}.md", f"text {n} {number}", version=str(number)) for n in range(40)))
            assert quick_shell("sync", "--allow-deletions", "99").code == Exit.OK
    finally:
        stop.set()
        thread.join()
    expected = quick_shell.digests()
    for file in (written[0], written[len(written) // 2], written[-1]):
        shutil.rmtree(quick_shell.home)
        assert quick_shell("restore", str(file)).code == Exit.OK
        assert quick_shell("sync", "--allow-deletions", "99").code == Exit.OK
        assert quick_shell.digests() == expected


def test_backup_replaces_only_backups(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[A])
    precious = write(quick_shell, "precious", "")
    assert quick_shell("backup", str(precious)).code == Exit.OK, "an empty file, as mktemp makes it"
    file = saved(quick_shell)
    before = members(file)
    quick_shell.commit("p1", source("a.md", "a tapir", version="2", at=FEBRUARY), at=FEBRUARY)
    assert quick_shell("sync").code == Exit.OK
    assert members(saved(quick_shell)) != before
    for content in (b"precious", gzip.compress(b"precious")):
        precious.write_bytes(content)
        assert quick_shell("backup", str(precious)).code == Exit.USAGE
        assert precious.read_bytes() == content
    assert quick_shell("backup", "/dev/null").code == Exit.USAGE
    assert quick_shell("backup", str(quick_shell.folder)).code == Exit.USAGE
    assert Path("/dev/null").is_char_device()


def test_backup_of_no_home_is_a_usage_error_and_makes_none(quick_shell: Shell) -> None:
    ended = quick_shell("backup", "backup.tar.gz", "--home", "nowhere")
    assert ended.code == Exit.USAGE
    assert not (quick_shell.folder / "nowhere").exists()
    assert not (quick_shell.folder / "backup.tar.gz").exists()


def test_damaged_database_is_not_backed_up(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[A])
    content = bytearray((quick_shell.home / "state.db").read_bytes())
    content[8192:16384] = b"\xff" * 8192
    (quick_shell.home / "state.db").write_bytes(content)
    with pytest.raises(StoreUnreadable, match="move it away"):
        module.backup(quick_shell.home, quick_shell.folder / "backup.tar.gz")
    assert not list(quick_shell.folder.glob("*backup*"))


@pytest.fixture
def read_only(quick_shell: Shell) -> Iterator[Path]:
    """A home on a read-only file system."""
    quick_shell.synced(p1=[A])
    home = str(quick_shell.home)
    if os.geteuid() or subprocess.run(["mount", "--bind", home, home], check=False).returncode:
        pytest.skip("nothing can be mounted here: that takes root, and a system that allows it")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", home], check=True)
        yield quick_shell.home
    finally:
        subprocess.run(["umount", "--lazy", home], check=True)


def test_home_on_a_read_only_disk_is_backed_up(read_only: Path, quick_shell: Shell) -> None:
    content = members(saved(quick_shell))
    assert set(RECORDS) - {"ingest.db"} <= set(content)
    assert [name for name in content if name.startswith("runs/")]


def test_database_that_cannot_be_opened_is_named(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[A])
    (quick_shell.home / "vectors.db-wal").mkdir()
    with pytest.raises(OSError, match=r"vectors\.db") as raised:
        module.backup(quick_shell.home, quick_shell.folder / "backup.tar.gz")
    assert raised.value.filename == str(quick_shell.home / "vectors.db")


def test_second_backup_to_the_same_file_waits_for_none(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[A])
    folder = quick_shell.folder / ".backup.tar.gz.partial"
    with module._workspace(folder):
        assert quick_shell("backup", "backup.tar.gz").code == Exit.LOCKED
        assert folder.exists()


@pytest.fixture
def content(quick_shell: Shell) -> dict[str, bytes]:
    """The members of a backup of a home that was then removed."""
    quick_shell.synced(p1=[A])
    content = members(saved(quick_shell))
    shutil.rmtree(quick_shell.home)
    return content


def no_symlink(member: tarfile.TarInfo) -> None:
    if member.name == "state.db":
        member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0


def claiming(content: dict[str, bytes], **more: Any) -> bytes:
    return json.dumps(json.loads(content["manifest.json"]) | more).encode()


FOREIGN: dict[str, Callable[[Path, dict[str, bytes]], object]] = {
    "empty": lambda file, content: file.write_bytes(b""),
    "no gzip": lambda file, content: file.write_bytes(b"precious"),
    "no tar": lambda file, content: file.write_bytes(gzip.compress(b"precious" * 200)),
    "another tar": lambda file, content: packed(file, {"state.db": b"x"}),
    "no manifest": lambda file, content: packed(file, {n: d for n, d in content.items() if n != "manifest.json"}),
    "manifest of nothing": lambda file, content: packed(file, {"manifest.json": b"{}"}),
    "another format": lambda file, content: packed(file, {"manifest.json": claiming(content, format="other")}),
    "without a member": lambda file, content: packed(file, {n: d for n, d in content.items() if n != "state.db"}),
    "with another member": lambda file, content: packed(file, content | {"more.db": b""}),
    "with a path upwards": lambda file, content: packed(file, content | {"../chunks/evil": b"evil"}),
    "with an absolute path": lambda file, content: packed(file, content | {"/tmp/chunksink-evil": b"evil"}),
    "naming a path upwards": lambda file, content: packed(
        file, content | {"manifest.json": claiming(content, digests={"../evil": "0" * 64}), "../evil": b"evil"}
    ),
    "with a link": lambda file, content: packed(file, content, no_symlink),
    "with other bytes": lambda file, content: packed(file, content | {"home.id": b"0" * 32}),
}


@pytest.mark.parametrize("how", FOREIGN)
def test_restore_of_a_foreign_file_changes_nothing(how: str, content: dict[str, bytes], quick_shell: Shell) -> None:
    file = quick_shell.folder / "foreign.tar.gz"
    FOREIGN[how](file, content)
    ended = quick_shell("restore", str(file), "--json")
    assert ended.code == ended.json["error"]["exit_code"] == Exit.DRIFT
    assert files(quick_shell.home) == {}
    assert not list(quick_shell.folder.rglob("*evil*")) and not Path("/tmp/chunksink-evil").exists()


def test_restore_of_a_cut_off_or_changed_file_changes_nothing(content: dict[str, bytes], quick_shell: Shell) -> None:
    whole = packed(quick_shell.folder / "whole.tar.gz", content).read_bytes()
    file = quick_shell.folder / "cut.tar.gz"
    for length in (1, 10, 100, len(whole) // 3, len(whole) // 2, len(whole) - 9, len(whole) - 8, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(BackupUnreadable):
            module.restore(quick_shell.home, file)
    for place in range(0, len(whole), len(whole) // 60):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        if members_or_none(file) != content:  # otherwise the change has no effect
            with pytest.raises(BackupUnreadable):
                module.restore(quick_shell.home, file)
    assert files(quick_shell.home) == {}
    file.write_bytes(whole)
    module.restore(quick_shell.home, file)
    assert quick_shell("sync").code == Exit.OK


def test_restore_of_no_file_names_it_and_changes_nothing(quick_shell: Shell) -> None:
    ended = quick_shell("restore", "nowhere/x.tar.gz")
    assert (ended.code, "nowhere/x.tar.gz" in ended.err, "make its folder" in ended.err) == (Exit.USAGE, True, False)
    assert list(quick_shell.folder.iterdir()) == []


def test_restore_of_a_newer_version_changes_nothing(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[A])
    with State(quick_shell.home) as state:
        state.db.execute("insert into _sqlite_migrations (migration_set, name) values ('chunksink.state', 'newer')")
        state.db.conn.commit()
    module.backup(quick_shell.home, quick_shell.folder / "newer.tar.gz")
    shutil.rmtree(quick_shell.home)
    with pytest.raises(NewerStore):
        module.restore(quick_shell.home, quick_shell.folder / "newer.tar.gz")
    assert files(quick_shell.home) == {}


@pytest.mark.parametrize("holder", [writing, ingest_lock])
def test_restore_waits_for_running_writers(holder: Any, quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_shell.synced(p1=[A])
    file = saved(quick_shell)
    monkeypatch.setattr("chunksink.rebuild.locks.WAIT_SECONDS", 0.1)
    monkeypatch.setattr("chunksink.ingest.store._LOCK_SECONDS", 0.1)
    before = files(quick_shell.home)
    with holder(quick_shell.home):
        assert quick_shell("restore", str(file), "--force").code == Exit.LOCKED
    assert files(quick_shell.home) == before


def test_restore_from_python_closes_readers_first(quick_shell: Shell) -> None:
    import chunksink

    quick_shell.synced(p1=[A])
    with chunksink.open() as index:
        assert len(index.search("cat")) == 1
        index.backup("backup.tar.gz")
        quick_shell.commit("p1", source("a.md", "a tapir", version="2", at=FEBRUARY), at=FEBRUARY)
        index.sync()
        with pytest.raises(HomeNotEmpty):
            index.restore("backup.tar.gz")
        assert index.restore("backup.tar.gz", force=True).replaced is not None
        assert index.sync().status == "ok"
        assert [hit.text for hit in index.search("tapir")] == ["a tapir"]


@pytest.mark.promise(9)
def test_open_reader_follows_a_restore(quick_shell: Shell) -> None:
    """`serve` is such a reader: its records are replaced while it has them open."""
    import chunksink

    quick_shell.synced(p1=[A])
    file = saved(quick_shell)
    quick_shell.commit("p1", source("a.md", "a tapir", version="2", at=FEBRUARY), at=FEBRUARY)
    for command in ("rebuild", "rebuild"):
        assert quick_shell(command).code == Exit.OK
    with chunksink.open() as reader:
        assert [hit.text for hit in reader.search("tapir")] == ["a tapir"]
        assert quick_shell("restore", str(file), "--force").code == Exit.OK
        assert quick_shell("sync").code == Exit.OK
        quick_shell.commit("p1", source("a.md", "a zebra", version="3", at=MARCH), at=MARCH)
        assert quick_shell("sync").code == Exit.OK
        assert [hit.text for hit in reader.search("zebra")] == ["a zebra"]
