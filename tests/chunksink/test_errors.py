"""`chunksink.errors` is one hierarchy. System errors get a remedy, and a bug keeps its traceback."""

import errno
import inspect
import json
import os
import pickle
from importlib import import_module
from pathlib import Path

import click
import pytest

import chunksink
from chunksink import errors
from chunksink.chunkbus.errors import RepeatedChunks, RepeatedId
from chunksink.command_line.cli import run
from chunksink.command_line.exits import Exit, Refusal, errors_as_refusals, print_failure
from chunksink.errors import ChunksinkError, RebuildError
from chunksink.ingest.errors import SourceFailed
from chunksink.rebuild.errors import Brake, NothingBuilt, Removal, WorseAnswers
from chunksink.sinks.errors import BuildBroken, BuildMissing, RefusedData, replace_errors
from tests.chunksink.shell import Shell, write

MODULES = [
    f"chunksink.{name}.errors"
    for name in ("chunkbus", "embeddings", "ingest", "rebuild", "search", "settings", "sinks")
]


@pytest.mark.parametrize("module", MODULES)
def test_every_error_is_a_chunksink_error(module: str) -> None:
    found = [one for _, one in inspect.getmembers(import_module(module), inspect.isclass) if issubclass(one, Exception)]
    own = [one for one in found if one.__module__ == module]
    assert own and all(issubclass(one, ChunksinkError) for one in own)


EXPORTED = {name: one for name, one in vars(errors).items() if not name.startswith("_")}


def test_the_docstring_draws_every_exported_error() -> None:
    assert errors.__doc__ is not None
    assert [name for name in EXPORTED if name not in errors.__doc__] == []
    assert [name for name, error in EXPORTED.items() if not issubclass(error, ChunksinkError)] == []
    assert len(EXPORTED) > 40
    assert {one.__name__ for one in RebuildError.__subclasses__()} <= EXPORTED.keys()


@pytest.mark.parametrize("kind", [BuildMissing, BuildBroken])
def test_errors_of_builds_append_one_remedy(kind: type[BuildMissing] | type[BuildBroken]) -> None:
    """Sinks of other packages may name only the problem. Chroma's worker pickles its errors."""
    assert str(kind("it is damaged")) == f"it is damaged: {kind.remedy}"
    own = pickle.loads(pickle.dumps(kind("it has key s3cret", "look there")))
    assert str(own) == "it has key s3cret: look there"
    with pytest.raises(kind) as found, replace_errors(lambda _error: own, ["s3cret"]):
        raise OSError("refused")
    assert str(found.value) == "it has key [key]: look there"
    assert str(RefusedData("too large")) == "too large"


@pytest.mark.parametrize(
    "error",
    [
        NothingBuilt(Path("home")),
        Brake(Removal(3, 4, "--allow-deletions 3"), "too many"),
        WorseAnswers("worse", {"ndcg": 0.5}),
        RepeatedChunks("twice", [RepeatedId("a", 2, 1)]),
        SourceFailed("SOURCE_EMPTY", "nothing in it"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_with_attributes_can_be_pickled(error: ChunksinkError) -> None:
    """Pools of processes pickle the errors of their workers."""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_reports_hits_and_answers_print_as_one_short_line(quick_shell: Shell) -> None:
    write(quick_shell, "docs/a.md", "# Otters\n\n" + "An otter holds hands. " * 40)
    with chunksink.open() as index:
        ingested, synced = index.ingest("docs"), index.sync()
        answer = index.search("otter", mode="keyword")
        printed = [
            repr(one) for one in (ingested, synced, index.plan(), index.verify(), index.status(), answer, answer[0])
        ]
    assert [line for line in printed if "\n" in line or len(line) > 200 or not line.startswith("<")] == []


@pytest.mark.parametrize(
    ("number", "text", "code", "expected"),
    [
        (errno.EROFS, None, Exit.USAGE, "Read-only file system: a/b; make that disk writable, or name another folder"),
        (errno.ENOSPC, None, Exit.ENGINE, "No space left on device: a/b; make room on that disk, then run it again"),
        (
            errno.EFBIG,
            None,
            Exit.ENGINE,
            "File too large: a/b; raise the file size limit (`ulimit -f`), or use a file system that allows larger "
            "files, then run it again",
        ),
        (errno.EIO, "cannot be written, make room", Exit.ENGINE, "cannot be written, make room: a/b"),
        (errno.EROFS, "correct its permissions", Exit.USAGE, "correct its permissions: a/b"),
        (errno.EBUSY, "wait for that", Exit.LOCKED, "wait for that: a/b"),
    ],
)
def test_system_error_without_a_remedy_gets_one(number: int, text: str | None, code: Exit, expected: str) -> None:
    with pytest.raises(Refusal) as refused, errors_as_refusals():
        raise OSError(number, text or os.strerror(number), "a/b")
    assert (refused.value.code, refused.value.message) == (code, expected)


def test_permission_error_without_a_file_names_none() -> None:
    with pytest.raises(Refusal) as refused, errors_as_refusals():
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    assert refused.value.code == Exit.USAGE
    assert "None" not in refused.value.message
    assert os.strerror(errno.EPERM) in refused.value.message


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def require(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("chunksink.chunkbus.layout.BusRoot.require", require)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("command", ["validate", "sync", "plan"])
def test_bug_with_json_is_printed_as_json_and_traceback(command: str, shell: Shell) -> None:
    ended = shell(command, "--json")
    assert ended.code == Exit.BUG
    error = json.loads(ended.out)["error"]
    assert (error["exit_code"], "ZeroDivisionError: a bug" in error["message"]) == (1, True)
    assert "Traceback" in ended.err
    assert 'raise ZeroDivisionError("a bug' in ended.err


def test_unexpected_end_of_a_file_is_no_interrupt(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    """click takes this error for the end of standard input."""

    def load(*_: object) -> None:
        raise EOFError("marshal data too short")

    monkeypatch.setattr("chunksink.chunkbus.layout.BusRoot.require", load)
    ended = shell("validate", "--json")
    assert ended.code == Exit.BUG
    assert "marshal data too short" in ended.err


def test_error_message_with_invalid_unicode_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """File names may contain such characters."""
    print_failure(click.ClickException("no \udcff"), Exit.BUG)
    assert json.loads(capsys.readouterr().out)["error"]["message"] == "no \\udcff"


@pytest.mark.usefixtures("broken")
def test_without_json_a_bug_keeps_its_traceback(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        run(["validate", "--home", str(tmp_path)])
