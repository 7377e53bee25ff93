"""`chunksink doctor` finds missing, damaged and foreign files of the chunks and the home, and its remedies work."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.command_line.exits import Exit
from chunksink.doctor import records
from chunksink.ingest.errors import IngestRefused
from tests.chunksink.doctor_checks import checks, is_sound, problems
from tests.chunksink.shell import Shell, write
from tests.support.bus import source
from tests.support.damaged_files import emptied, foreign, half, inside, newer


def test_missing_chunks_and_partitions_fail(built: Shell) -> None:
    for key in ("a", "c"):
        built.remove(key)
    found = checks(built)
    assert (problems(found), found["partitions"]["found"]) == ({"partitions": "fail"}, "missing: a, c")
    assert "`chunksink retire-partition KEY`" in found["partitions"]["remedy"]
    built.remove("b")
    assert problems(checks(built)) == {"chunks": "warn", "partitions": "fail"}
    shutil.rmtree(built.home)
    assert problems(checks(built, Exit.OK)) == {"chunks": "warn"}, "of no index nothing is missing"


def test_partitions_that_were_invalid_when_last_read_fail(built: Shell) -> None:
    built.cut_off("b")
    assert built("sync").code == Exit.INVALID_INPUT
    found = checks(built)
    assert problems(found) == {"partitions": "fail"}
    assert "b" in found["partitions"]["found"]
    assert "`chunksink validate`" in found["partitions"]["remedy"]
    built.remove("a")
    found = checks(built)
    assert all(key in found["partitions"]["found"] for key in ("missing: a", ": b"))


def test_incomplete_partitions_fail(built: Shell) -> None:
    built.root.chunks_file("b").unlink()
    built.root.manifest_file("c").unlink()
    built.commit("d", source("d.md", "a dog"))
    built.root.chunks_file("d").write_bytes(b"")
    built.commit("e")  # a partition may be empty
    found = checks(built)
    assert problems(found) == {"chunks": "fail"}
    assert found["chunks"]["found"].endswith(
        "5 partitions, 3 of them incomplete: b (its chunks file is missing), c (its manifest is missing), "
        "d (its manifest counts 1 chunk, its chunks file has 0 bytes)"
    )


def test_damaged_records_and_cache_fail(built: Shell) -> None:
    for name in ("state.db", "vectors.db"):
        for file in built.home.glob(f"{name}*"):
            file.unlink()
        foreign(built.home / name)
    found = checks(built)
    assert problems(found) == {"index": "fail", "cache": "fail"}
    assert "`chunksink cache verify --repair` sets it aside" in found["cache"]["remedy"]


@pytest.mark.parametrize(("name", "check"), [("state.db", "index"), ("vectors.db", "cache")])
def test_damaged_page_of_a_database_fails_with_a_working_remedy(
    name: str, check: str, built: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = "chunk" if name == "state.db" else "vector"
    emptied(built.home / name, table)
    assert problems(checks(built)) == {check: "fail"}
    with monkeypatch.context() as patch:
        patch.setattr(records, "_CHECKED_BYTES", 1000)
        assert "not checked for damage" in checks(built, Exit.OK)[check]["found"]
    if name == "state.db":
        (built.home / name).unlink()
        assert built("rebuild").code == Exit.OK
    else:
        assert built("cache", "verify", "--repair").code == Exit.OK
    assert is_sound(built)


def test_damaged_cache_has_a_working_remedy(built: Shell) -> None:
    half(built.home / "vectors.db")
    assert "`chunksink cache verify --repair` sets it aside" in checks(built)["cache"]["remedy"]
    assert built("cache", "verify", "--repair").code == Exit.OK
    assert "can be deleted: vectors.db.damaged-1" in checks(built, Exit.OK)["cache"]["found"]


def test_sources_without_a_tenant_are_a_warning_if_tenants_are_required(
    quick_shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = source("a.md", "a cat", tenant_id="acme")
    hashed = source("c.md", "a cat", parent_id="c" * 64)
    quick_shell.synced(p1=[ours, source("b.md", "a cat", "a dog"), hashed])
    assert "tenants" not in checks(quick_shell, Exit.OK)
    monkeypatch.setenv("CHUNKSINK_TENANTS", "required")
    found = checks(quick_shell, Exit.OK)
    assert problems(found) == {"tenants": "warn"}
    assert found["tenants"]["found"].startswith("2 sources ")
    quick_shell.commit("p1", ours)
    assert quick_shell("sync").code == Exit.OK
    assert is_sound(quick_shell)


def test_missing_or_empty_home_id_fails_with_a_working_remedy(built: Shell) -> None:
    file = built.home / "home.id"
    was = file.read_text()
    file.write_text("")
    found = checks(built)
    assert problems(found) == {"index": "fail", "live in fts": "fail", "live in chroma": "fail"}
    assert was in found["live in fts"]["found"]
    file.unlink()
    assert problems(checks(built)) == {"index": "fail"}
    assert not file.exists()
    assert built("status").code == Exit.OK  # makes a new id
    assert built("sync", "--adopt").code == Exit.OK
    assert is_sound(built)


@pytest.mark.parametrize("harm", [half, foreign, inside, newer], ids=lambda harm: harm.__name__)
def test_unusable_ingest_database_fails(harm: Callable[[Path], None], quick_shell: Shell) -> None:
    for number in range(60):
        write(quick_shell, f"notes/{number}.md", f"# A note\n\nabout {number}\n")
    assert quick_shell("ingest", "notes").code == Exit.OK
    assert checks(quick_shell, Exit.OK)["ingest"]["found"] == ".chunksink/ingest.db can be read"
    harm(quick_shell.home / "ingest.db")
    found = checks(quick_shell)
    assert problems(found) == {"ingest": "fail"}
    assert "ingest.db" in found["ingest"]["found"]
    assert "move it away: the next `chunksink ingest` makes a new one" in found["ingest"]["remedy"]


def test_a_format_that_cannot_be_loaded_fails(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def all_formats() -> None:
        raise IngestRefused("the format notes cannot be loaded")

    assert quick_shell("ingest", str(write(quick_shell, "a.md", "# A\n\nb\n")), "--sync").code == Exit.OK
    monkeypatch.setattr(records, "all_formats", all_formats)
    found = checks(quick_shell)
    assert (problems(found), found["ingest"]["found"]) == ({"ingest": "fail"}, "the format notes cannot be loaded")
