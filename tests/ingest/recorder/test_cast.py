"""asciinema recordings, versions 2 and 3: read whole or refused with the line and the reason."""

import json
from pathlib import Path

import pytest

from chunksink.ingest.errors import SourceFailed
from tests.ingest.recorder.support import DEFAULT, SMALL, V2, V3, Sizes, check_replay, read_cast, read_file, write_log

SECOND = '[0.5, "o", "ls\\r\\n"]'
TIMES = {V2: (1.0, 1.5, 1.5004, 2, 3.25), V3: (1, 0.5, 0.0004, 0.4996, 1.25)}


@pytest.mark.parametrize("header", [V2, V3], ids=["v2", "v3"])
def test_frames_are_joined_to_lines(tmp_path: Path, header: str) -> None:
    frames = zip(TIMES[header], ["$ ", "l", "s\r\n", "READ", "ME"], strict=True)
    read = read_cast(tmp_path, header, "", *(json.dumps([at, "o", text]) for at, text in frames))
    (chunk,) = read.chunks
    assert chunk["text"] == "[OUT] $ ls\n[OUT] README"
    metadata = chunk["metadata"]
    assert (metadata["pane_id"], metadata["session_id"], metadata["event_ids"]) == ("0", None, ["0:0", "0:3"])
    lines = read.path.read_bytes().splitlines(keepends=True)
    assert metadata["start_offset"]["ordinal"] == 0
    assert metadata["end_offset"] == {"segment_id": 0, "ordinal": 4, "byte_offset": sum(map(len, lines[:-1]))}
    assert (chunk["span"]["timestamp_start"], chunk["span"]["timestamp_end"]) == (1.0, 3.25)
    assert metadata["occurred_at_start_ms"] is None and metadata["occurred_at_end_ms"] is None
    assert read.notices == []
    check_replay(read)


def test_timestamp_of_the_header_gives_times(tmp_path: Path) -> None:
    header = '{"version": 2, "width": 80, "height": 24, "timestamp": 1504467315, "title": "Demo"}'
    (chunk,) = read_cast(tmp_path, header, '[0.001999, "o", "x"]', '[2.5, "o", "y"]').chunks
    assert chunk["metadata"]["occurred_at_start_ms"] == 1504467315001
    assert chunk["metadata"]["occurred_at_end_ms"] == 1504467317500
    assert chunk["metadata"]["title"] == "Demo"
    assert chunk["source"]["source_type"] == "asciicast"


def test_intervals_are_added_exactly(tmp_path: Path) -> None:
    """Ten times 0.1 is one second; in binary fractions it is a little less."""
    read = read_cast(tmp_path, V3, *['[0.1, "o", "x"]'] * 10, '[0, "o", "y\\n"]')
    assert read.chunks[0]["span"]["timestamp_end"] == 1.0


def test_markers_and_the_end_separate_and_a_resize_does_not(tmp_path: Path) -> None:
    read = read_cast(
        tmp_path,
        V3,
        '[0, "o", "one "]',
        '[0, "r", "100x50"]',
        '[0, "o", "line\\n"]',
        '[0, "m", "Second part"]',
        '[0, "o", "two\\n"]',
        '[0, "x", "0"]',
        '[0, "o", "three\\n"]',
    )
    assert read.texts == ["[OUT] one line", "[OUT] two", "[OUT] three"]
    assert read.metadata("opened_by") == ["start", "control", "lifecycle"]
    assert read.sections == [None, ["Second part"], ["Second part"]]
    check_replay(read)


def test_joined_frames_end_at_a_pause_a_width_and_a_size(tmp_path: Path) -> None:
    pause = read_cast(tmp_path, V3, '[0, "o", "a"]', '[30, "o", "b"]', '[30.001, "o", "c"]')
    assert pause.texts == ["[OUT] ab", "[OUT] c"]
    assert pause.metadata("opened_by") == ["start", "time"]
    exact = read_cast(tmp_path, V3, '[0.0012, "o", "a"]', '[30.0003, "o", "b"]')
    assert exact.metadata("event_ids") == [["0:0", "0:1"]]
    wide = read_cast(tmp_path, V3, *['[25, "o", "a"]'] * 7)
    assert wide.metadata("event_count") == [1, 1] and wide.texts[1].endswith("[OUT] aa")
    big = read_cast(tmp_path, V3, *[json.dumps([0, "o", "x" * 600])] * 4)
    assert big.metadata("event_ids") == [["0:0"], ["0:0", "0:3"]]


def test_escape_sequence_is_not_separated_from_its_end(tmp_path: Path) -> None:
    frames = [json.dumps([0, "o", "x" * 1799 + "\x1b[38;5"]), json.dumps([0, "o", ";12mred\n"])]
    read = read_cast(tmp_path, V3, *frames)
    assert "12m" not in "".join(read.texts)
    check_replay(read)


def test_unknown_codes_are_skipped_and_reported(tmp_path: Path) -> None:
    read = read_cast(tmp_path, V2, '[0, "o", "a"]', '[1, "z", "some thing"]', '[2, "o", "b"]')
    assert read.texts == ["[OUT] ab"]
    (notice,) = read.notices
    assert (notice.line, notice.code, notice.is_failure) == (3, "EVENT_KIND_UNKNOWN", False)


def check_refused(path: Path, line: int, sizes: Sizes = DEFAULT) -> None:
    with pytest.raises(SourceFailed) as failure:
        read_file(path, sizes)
    assert failure.value.code == "RECORDING_MALFORMED"
    assert failure.value.reason.startswith(f"line {line}: ")


@pytest.mark.promise(6)
@pytest.mark.parametrize(
    "header",
    [
        "",
        "[1]",
        '{"version": 1, "width": 80, "height": 24}',
        '{"version": 2, "width": 80, "height": 24, "timestamp": "now"}',
        '{"version": 2, "width": 80, "height": 24, "title": 5}',
    ],
)
def test_bad_header_is_refused(tmp_path: Path, header: str) -> None:
    check_refused(write_log(tmp_path, [header, SECOND], "demo.cast"), 1)


@pytest.mark.promise(6)
@pytest.mark.parametrize("header", [V2, V3], ids=["v2", "v3"])
@pytest.mark.parametrize(
    "frame",
    [
        "lol!",
        '[1, "o"]',
        '[1, "o", "x", ""]',
        '["1", "o", "x"]',
        '[-0.1, "o", "x"]',
        '[1e999999, "o", "x"]',
        '[NaN, "o", "x"]',
        '[1, 5, "x"]',
        '[1, "o", true]',
        b'[1, "o", "\xff"]',
    ],
)
def test_broken_recording_is_refused_whole(tmp_path: Path, header: str, frame: str | bytes) -> None:
    path = write_log(tmp_path, [header, *[SECOND] * 2000, frame, SECOND], "demo.cast")
    check_refused(path, 2002, {"CHUNKS_PER_PART": 1})


def test_long_lines_and_empty_files_are_refused(tmp_path: Path) -> None:
    check_refused(write_log(tmp_path, [V2, b'[1, "o", "' + b"x" * 9_000_000 + b'"]'], "demo.cast"), 2)
    check_refused(write_log(tmp_path, [], "demo.cast"), 1)


REFUSED = {"broken", "invalid-code", "invalid-data", "invalid-time-1", "invalid-time-2", "wrong-event-length"}


@pytest.mark.parametrize("sizes", [DEFAULT, SMALL], ids=["default", "small"])
def test_real_recordings(shared_data: Path, sizes: Sizes) -> None:
    files = sorted((shared_data / "casts").rglob("*.cast"))
    assert len(files) > 30
    for path in files:
        if sizes is SMALL and path.stem == "big":
            continue  # it has 60,000 chunks then
        if path.stem in REFUSED:
            check_refused(path, 3, sizes)
            continue
        read = read_file(path, sizes)
        assert not any(notice.is_failure for notice in read.notices), path
        assert bool(read.chunks) == (path.stem != "no-events"), path
        assert all(len(text) <= sizes["MAX_CHUNK_CHARS"] for text in read.texts)
        check_replay(read, sizes)


def test_large_recording_loses_nothing(shared_data: Path) -> None:
    path = shared_data / "casts" / "big.cast"
    sent = "".join(json.loads(line)[2] for line in path.read_text(encoding="utf-8").splitlines()[1:])
    own = "".join(chunk["text"][chunk["metadata"]["overlap_chars"] :] for chunk in read_file(path).chunks)
    assert "".join(own.replace("[OUT]", "").split()) == "".join(sent.split())
