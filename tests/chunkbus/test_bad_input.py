"""Input that is cut, mixed up or hostile: refused with code, partition and line, and never with a traceback."""

import json
import os
import pickle
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Chunk
from chunksink.chunkbus.diagnosis import diagnose_json
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.reader import read_partition
from tests.chunkbus.samples import chunk, codes, commit, line_of, lines_of, listing, places, put, put_chunks, validate
from tests.conftest import HEAVY
from tests.support.users import as_nobody

pytestmark = pytest.mark.promise(6)

GOOD = line_of(chunk(0))
NEXT = line_of(chunk(1))


def with_metadata(value: bytes) -> bytes:
    """A valid record with this in its metadata, its fields in the order in which our writer puts them."""
    return NEXT.replace(b',"hashes"', b',"metadata":{"a":' + value + b'},"hashes"')


def with_note(value: bytes) -> bytes:
    """A valid record with one unknown field of this value."""
    return NEXT[:-1] + b',"note":' + value + b"}"


BAD_LINES: dict[str, tuple[str, bytes]] = {
    "byte order mark": (findings.ENCODING, b"\xef\xbb\xbf" + NEXT),
    "CR LF": (findings.ENCODING, NEXT + b"\r"),
    "raw NUL": (findings.ENCODING, with_note(b'"a\x00b"')),
    "only NUL": (findings.ENCODING, b"\x00" * 512),
    "escaped NUL in the text": (findings.ENCODING, line_of(chunk(1, text="a\0b"))),
    "escaped lone high surrogate": (findings.ENCODING, with_note(b'"\\ud83d"')),
    "escaped lone low surrogate": (findings.ENCODING, with_note(b'"x\\udc00"')),
    "surrogates the wrong way round": (findings.ENCODING, with_note(b'"\\ude00\\ud83d"')),
    "lone surrogate in a key": (findings.ENCODING, NEXT[:-1] + b',"\\ud800":1}'),
    "lone surrogate in the text": (findings.ENCODING, NEXT.replace(b"something", b"\\ud800")),
    "raw surrogate bytes": (findings.ENCODING, with_note(b'"\xed\xa0\x80"')),
    "overlong UTF-8": (findings.ENCODING, with_note(b'"\xc0\x80"')),
    "beyond Unicode": (findings.ENCODING, with_note(b'"\xf4\x90\x80\x80"')),
    "Latin-1": (findings.ENCODING, with_note(b'"caf\xe9"')),
    "UTF-16": (findings.ENCODING, NEXT.decode().encode("utf-16")),
    "duplicate key": (findings.JSON_PARSE, NEXT[:-1] + b',"text":"other"}'),
    "duplicate key, spaced": (findings.JSON_PARSE, NEXT[:-1] + b', "text"  : "other"}'),
    "duplicate key, escaped": (findings.JSON_PARSE, NEXT[:-1] + b',"te\\u0078t":"other"}'),
    "duplicate key, deep": (findings.JSON_PARSE, with_note(b'[{"a":{"b":1,"b":1}}]')),
    "duplicate key, in metadata": (findings.JSON_PARSE, with_metadata(b'1,"a":1')),
    "depth 2,000": (findings.JSON_PARSE, with_note(b"[" * 2_000 + b"]" * 2_000)),
    "depth 2,000 of objects in metadata": (findings.JSON_PARSE, with_metadata(b'{"a":' * 2_000 + b"1" + b"}" * 2_000)),
    "depth 10,000 of objects": (findings.JSON_PARSE, with_note(b'{"a":' * 10_000 + b"1" + b"}" * 10_000)),
    "depth 10,000 in metadata": (findings.JSON_PARSE, with_metadata(b"[" * 10_000 + b"]" * 10_000)),
    "depth 100,000, never closed": (findings.JSON_PARSE, b"[" * 100_000),
    "NaN": (findings.JSON_PARSE, with_note(b"NaN")),
    "Infinity": (findings.JSON_PARSE, with_note(b"[1, -Infinity]")),
    "a number beyond all doubles": (findings.JSON_PARSE, with_note(b"1e999")),
    "a number of 400 digits": (findings.JSON_PARSE, with_note(b"1" * 400)),
    "a number of 400 digits in metadata": (findings.JSON_PARSE, with_metadata(b"1" * 400)),
    "a number of 400 digits in a count": (
        findings.JSON_PARSE,
        NEXT.replace(b',"hashes"', b',"chunk_count":' + b"1" * 400 + b',"hashes"'),
    ),
    "a negative number of 310 digits": (findings.JSON_PARSE, with_metadata(b"[-" + b"9" * 310 + b"]")),
    "a number of 5,000 digits": (findings.JSON_PARSE, with_note(b"1" * 5_000)),
    "blank": (findings.JSON_PARSE, b""),
    "white space": (findings.JSON_PARSE, b" \t "),
    "two records": (findings.JSON_PARSE, NEXT + NEXT),
    "half a record": (findings.JSON_PARSE, NEXT[: len(NEXT) // 2]),
    "comment": (findings.JSON_PARSE, b"// nothing"),
    "single quotes": (findings.JSON_PARSE, b"{'text': 'x'}"),
    "raw control character": (findings.JSON_PARSE, with_note(b'"a\x01b"')),
    "null": (findings.JSON_PARSE, b"null"),
    "a string": (findings.JSON_PARSE, b'"text"'),
    "a list of records": (findings.JSON_PARSE, b"[" + NEXT + b"]"),
    "10 MB": (findings.LINE_TOO_LONG, line_of(chunk(1, text="x" * 10**7))),
    "10 MB of nothing": (findings.LINE_TOO_LONG, b" " * 10**7),
}


def test_good_lines_are_accepted() -> None:
    """Lines for the fast check, which encodes them again; each bad one has a single problem."""
    for line in (GOOD, NEXT, with_metadata(b"[1]")):
        assert msgspec.json.encode(msgspec.json.decode(line, type=Chunk)) == line


@pytest.mark.parametrize(("code", "line"), BAD_LINES.values(), ids=BAD_LINES)
def test_line_when_bad_is_reported_without_its_neighbours(code: str, line: bytes, tmp_path: Path) -> None:
    assert b"\n" not in line or code == findings.ENCODING  # UTF-16 may hold one
    line = line.replace(b"\n", b"")
    root = put(FolderRoot(tmp_path), "k", b"\n".join([GOOD, line, line_of(chunk(2)), b""]))
    before = listing(tmp_path)
    assert places(validate(root)) == [(code, "error", "k", 2)]
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"null", "null"),
        (b"true", "a boolean"),
        (b"1", "a number"),
        (b"9" * 4_301, "a number"),
        (b"1.5", "a number"),
        (b'""', "a string"),
        (b"[]", "an array"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_line_that_is_no_object_is_named_in_words_of_json(line: bytes, kind: str) -> None:
    problem = diagnose_json(line)
    assert problem is not None
    assert problem.detail == f"is not a JSON object but {kind}"


@pytest.mark.parametrize(
    ("line", "code", "remedy"),
    [
        (b"PAR1\x15\x04\x15", findings.ENCODING, "df.to_json("),
        (b"PAR1\x15\x00\x15", findings.ENCODING, "df.to_json("),
        *((pickle.dumps({"a": 1}, protocol), findings.ENCODING, "pickle") for protocol in range(2, 6)),
        (b'{"a": NaN}', findings.JSON_PARSE, "null"),
    ],
)
def test_line_that_another_writer_left_is_explained_with_the_remedy(line: bytes, code: str, remedy: str) -> None:
    problem = diagnose_json(line)
    assert problem is not None
    assert problem.code == code
    assert remedy in problem.detail


def test_integer_of_many_digits_is_explained_without_python() -> None:
    problem = diagnose_json(b'{"a":' + b"9" * 4_301 + b"}")
    assert problem is not None
    assert (problem.code, "sys." in problem.detail) == (findings.JSON_PARSE, False)


@pytest.mark.parametrize("depth", [10, 100, 250, 400, 800])
def test_nesting_when_parsers_accept_it_is_accepted(depth: int, tmp_path: Path) -> None:
    nested = b"[" * depth + b"]" * depth
    lines = [with_note(nested), NEXT[:-1] + b', "metadata" : {"a": ' + nested + b"}}"]
    lines += [with_metadata(nested)]
    for number, line in enumerate(lines):
        root = put(FolderRoot(tmp_path / str(number)), "k", line + b"\n")
        assert validate(root) == []
        assert [record for _, record in read_partition(root, "k")] == [json.loads(line)]


def test_line_numbers_are_right_across_blocks_and_long_lines(tmp_path: Path) -> None:
    """Blocks are 1 MiB: bad lines before, at and after their borders and behind overlong lines keep their numbers."""
    chance = random.Random(5)
    lines, bad = [], []
    for number in range(1, 400):
        kind = chance.random()
        if kind < 0.02:
            lines.append(b"x" * (8 * 2**20 + chance.choice([1, 2, 2**20, 3 * 2**20])))
            bad.append((findings.LINE_TOO_LONG, number))
        elif kind < 0.1:
            lines.append(chance.choice([b"", b"{", b"nonsense"]))
            bad.append((findings.JSON_PARSE, number))
        else:
            lines.append(line_of(chunk(number, text="y" * chance.choice([10, 1_000, 30_000]))))
    root = FolderRoot(tmp_path)
    put_chunks(root, "k", b"\n".join(lines) + b"\n")
    assert len(bad) > 20
    assert [(finding.code, finding.line) for finding in validate(root)] == [(findings.MANIFEST_MISSING, None), *bad]


def test_partition_when_cut_off_anywhere_is_an_error(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    records = [chunk(index) for index in range(5)]
    commit(root, "k", records)
    whole = root.chunks_file("k").read_bytes()
    starts = [len(lines_of(records[:count])) for count in range(6)]
    for length in range(starts[3 if HEAVY else 4], len(whole)):
        root.chunks_file("k").write_bytes(whole[:length])
        found = codes(validate(root))
        complete = max(count for count in range(6) if starts[count] <= length)
        tail = whole[starts[complete] : length]
        is_record = tail in (b"", whole[starts[complete] : starts[min(complete + 1, 5)] - 1])
        expected = [] if is_record else [findings.JSON_PARSE]
        if complete + bool(tail) != 5:
            expected.append(findings.MANIFEST_MISMATCH)
        assert found == [*expected, findings.CHECKSUM_MISMATCH], length


def test_partition_when_any_bit_flips_is_an_error(tmp_path: Path) -> None:
    """Even if the line stays valid, the checksum differs. There may be further findings."""
    root = FolderRoot(tmp_path)
    commit(root, "k", [chunk(index) for index in range(3)])
    file = root.chunks_file("k")
    whole = file.read_bytes()
    chance = random.Random(9)
    for position in [
        *range(0, len(whole), 7 if HEAVY else 29),
        *(chance.randrange(len(whole)) for _ in range(150)),
        len(whole) - 1,
    ]:
        flipped = bytearray(whole)
        flipped[position] ^= 1 << chance.randrange(8)
        file.write_bytes(flipped)
        assert findings.CHECKSUM_MISMATCH in codes(validate(root)), (position, flipped[position])
    file.write_bytes(whole)
    assert validate(root) == []


def test_manifest_when_any_byte_flips_never_crashes(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    commit(root, "k", [chunk(0)])
    file = root.manifest_file("k")
    whole = file.read_bytes()
    chance = random.Random(11)
    digest = range(whole.index(b"sha256:") + 7, whole.index(b"sha256:") + 71)
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << chance.randrange(8)
        file.write_bytes(flipped)
        found = codes(validate(root))  # a letter of the producer's name may change unseen; nothing may raise
        if position in digest and flipped.lower() != whole.lower():
            assert found, position


NO_FILES: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a loop": lambda path: path.symlink_to(path.name),
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture
def within_a_minute() -> Iterator[None]:
    """Fails instead of waiting forever for a pipe without a writer."""

    def stop(*_: object) -> None:
        pytest.fail("it is still waiting")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("within_a_minute")
@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES)
@pytest.mark.parametrize("which", ["chunks", "manifest"])
def test_path_when_not_a_regular_file_is_unreadable(which: str, make: Callable[[Path], object], tmp_path: Path) -> None:
    root = put(FolderRoot(tmp_path), "k", lines_of([chunk(0)]))
    put(root, "other", lines_of([chunk(0)]))
    path = root.chunks_file("k") if which == "chunks" else root.manifest_file("k")
    path.unlink()
    make(path)
    assert places(validate(root)) == [(findings.UNREADABLE, "error", "k", None)]
    with pytest.raises(OSError, match=path.name):
        root.open("k")


def test_file_without_permission_is_unreadable() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # another user cannot enter pytest's folders
        root = put(FolderRoot(Path(folder)), "k", lines_of([chunk(0)]))
        assert places(validate(root)) == []
        root.chunks_file("k").chmod(0)
        with as_nobody():
            assert places(validate(root)) == [(findings.UNREADABLE, "error", "k", None)]


def test_folder_when_it_is_a_file_is_unreadable(tmp_path: Path) -> None:
    root = put(FolderRoot(tmp_path), "k", b"")
    root.chunks_file("k").unlink()
    root.canonical.rmdir()
    root.canonical.write_bytes(b"")
    assert places(validate(root)) == [(findings.UNREADABLE, "error", "k", None)]
