"""Kills and disk faults at every step."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chunksink.sinks.conformance.samples import family, hashes_in, hashes_of
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Family
from chunksink.sinks.errors import Transient
from chunksink.sinks.jsonl import JsonlSink
from chunksink.sinks.jsonl.sink import LINK
from tests.conftest import ROOT
from tests.support.jsonl import (
    ADDED,
    AFTER,
    BEFORE,
    GOING,
    NEW,
    OLD,
    UNTOUCHED,
    as_files,
    change,
    content_of,
    file_of,
    pending,
    prepared,
    visible,
)


@contextmanager
def steps(at: Callable[[str, Callable[[], Any]], Any]) -> Iterator[None]:
    """Call `at(name, go)` instead of each operation on the disk. `go` executes it."""
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
            """Writes in two halves, as disks do."""
            content = b"".join(lines)
            for half in (content[: len(content) // 2], content[len(content) // 2 :]):
                at("write", lambda half=half: (self.file.write(half), self.file.flush()))  # type: ignore[misc]

    def opened(self: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        file = real_open(self, mode, *args, **options)
        return Writer(file) if mode[0] in "xwa" else file

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(os, name, wrapped(name))
        patch.setattr(Path, "open", opened)
        yield


def is_between(folder: Path) -> bool:
    """Whether every family is completely in the old or in the new version."""
    found = visible(folder)
    choices = [(OLD, NEW), (GOING, None), (None, ADDED), (UNTOUCHED, UNTOUCHED)]
    expected = 0
    for before, after in choices:
        name = file_of(folder, before or after).name  # type: ignore[arg-type]
        allowed = [None if one is None else content_of(one) for one in (before, after)]
        assert found.get(name) in allowed, f"{name} is neither the old family nor the new one"
        expected += name in found
    return len(found) == expected


def killed_everywhere(template: str, into: str) -> None:
    """Runs in its own process. Its n-th child kills itself before its n-th step."""
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


def test_kill_at_any_step_leaves_whole_families_and_the_next_run_converges(tmp_path: Path) -> None:
    prepared(tmp_path / "template")
    (tmp_path / "killed").mkdir()
    command = f"import sys; from {__name__} import killed_everywhere; killed_everywhere(*sys.argv[1:])"
    arguments = [str(tmp_path / "template"), str(tmp_path / "killed")]
    subprocess.run([sys.executable, "-c", command, *arguments], cwd=ROOT, check=True, timeout=120)
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
        assert hashes_in(build, content=True) == hashes_of(AFTER)
        assert pending(folder) == []
        build.close()
    assert visible(roots[-1] / "b1") == as_files(AFTER)
    assert {story[-1] for story in stories} >= {"write", "fsync", "replace", "unlink", "mkdir"}
    assert any(story[-1] == "fsync" and "unlink" in story for story in stories), "none in the middle of flush"


def full_disk(number: int, seen: list[str], *, landed: bool = False) -> Callable[[str, Callable[[], Any]], Any]:
    """An argument of `steps`: the step with that number fails, even if it had its effect (`landed`). All steps are
    recorded."""

    def at(name: str, go: Callable[[], Any]) -> Any:
        seen.append(name)
        if len(seen) != number:
            return go()
        if landed:
            go()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return at


@pytest.mark.parametrize("landed", [False, True], ids=["failed", "landed and failed"])
def test_disk_fault_at_any_step_leaves_whole_families(tmp_path: Path, landed: bool) -> None:
    prepared(tmp_path / "template")
    failed = set()
    for number in range(1, 200):
        root = tmp_path / str(number)
        shutil.copytree(tmp_path / "template", root)
        folder, build = root / "b1", JsonlSink(root).open("b1")
        seen: list[str] = []
        calls: list[Callable[[], object]] = [
            partial(build.replace, [NEW, ADDED]),
            partial(build.delete, [GOING.parent_id]),
            build.flush,
        ]
        with steps(full_disk(number, seen, landed=landed)):
            for call in calls:
                try:
                    call()
                except Transient as error:
                    failed.add(seen[number - 1])
                    assert "disk space" in str(error)
                    assert str(folder) in str(error)
                    assert is_between(folder), seen
                    if call != calls[-1]:
                        assert visible(folder) == as_files(BEFORE), "seen before flush"
                    # A failed operation may be repeated. One with an unknown result is requested again.
                    change(build) if landed else call()
        assert visible(folder) == as_files(AFTER), seen
        assert pending(folder) == []
        if len(seen) < number:
            break
    assert failed >= {"write", "fsync", "replace", "unlink"}


@pytest.mark.parametrize("landed", [False, True], ids=["failed", "landed and failed"])
def test_repeated_call_loses_no_part_of_a_large_family(tmp_path: Path, landed: bool) -> None:
    large = family("a", [f"new {number}" for number in range(6)], version="2")
    parts = [Family(large.documents[at : at + 2], first=at == 0, last=at == 4) for at in (0, 2, 4)]
    prepared(tmp_path / "template")
    for number in range(1, 200):
        root = tmp_path / str(number)
        shutil.copytree(tmp_path / "template", root)
        folder, build = root / "b1", JsonlSink(root).open("b1")
        seen: list[str] = []
        for part, other in zip(parts, (ADDED, UNTOUCHED, GOING), strict=True):
            with steps(full_disk(number, seen, landed=landed)):
                try:
                    build.replace([part, other])
                except Transient:
                    build.replace([part, other])
            assert build.flush() == []
        assert visible(folder) == as_files([large, GOING, ADDED, UNTOUCHED]), seen
        assert pending(folder) == []
        if len(seen) < number:
            return
    pytest.fail("it never completes")


@pytest.mark.parametrize("act", ["create", "flip", "drop"])
def test_disk_fault_at_any_step_leaves_no_half_build(tmp_path: Path, act: str) -> None:
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
        with steps(full_disk(number, seen)):
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
