"""asciinema recordings, versions 2 and 3: read whole or refused with the line and the reason."""

import json
from pathlib import Path

import pytest

from chunksink.producers.errors import MEANINGS
from chunksink.producers.recorder import Policy
from tests.producers.recorder.support import SMALL, V2, V3, check_replay, read_cast, read_file

SECOND = '[0.5, "o", "ls\\r\\n"]'


@pytest.mark.parametrize(
    ("header", "frames"),
    [
        (
            V2,
            (
                '[1.0, "o", "$ "]',
                '[1.5, "o", "l"]',
                '[1.5004, "o", "s\\r\\n"]',
                "",
                '[2, "o", "READ"]',
                '[3.25, "o", "ME"]',
            ),
        ),
        (
            V3,
            (
                "# a comment",
                '[1, "o", "$ "]',
                '[0.5, "o", "l"]',
                '[0.0004, "o", "s\\r\\n"]',
                '[0.4996, "o", "READ"]',
                '[1.25, "o", "ME"]',
            ),
        ),
    ],
    ids=["v2", "v3"],
)
def test_frames_are_joined_to_lines(tmp_path: Path, header: str, frames: tuple[str, ...]) -> None:
    read = read_cast(tmp_path, header, *frames)
    (chunk,) = read.chunks
    assert chunk["text"] == "[OUT] $ ls\n[OUT] README"
    metadata = chunk["metadata"]
    assert (metadata["pane_id"], metadata["session_id"], metadata["event_ids"]) == ("0", None, ["0:0", "0:3"])
    lines = read.path.read_bytes().splitlines(keepends=True)
    assert metadata["start_offset"]["ordinal"] == 0
    assert metadata["end_offset"] == {"segment_id": 0, "ordinal": 4, "byte_offset": sum(map(len, lines[:-1]))}
    assert (chunk["span"]["timestamp_start"], chunk["span"]["timestamp_end"]) == (1.0, 3.25)
    assert metadata["occurred_at_start_ms"] is None and metadata["occurred_at_end_ms"] is None
    assert read.left_out == []
    check_replay(read)


def test_a_header_with_a_clock_gives_times(tmp_path: Path) -> None:
    header = '{"version": 2, "width": 80, "height": 24, "timestamp": 1504467315, "title": "Demo"}'
    (chunk,) = read_cast(tmp_path, header, '[0.0019999, "o", "x"]', '[2.5, "o", "y"]').chunks
    assert chunk["metadata"]["occurred_at_start_ms"] == 1504467315001
    assert chunk["metadata"]["occurred_at_end_ms"] == 1504467317500
    assert chunk["metadata"]["title"] == "Demo"
    assert chunk["source"]["source_type"] == "asciicast"


def test_intervals_are_added_exactly(tmp_path: Path) -> None:
    """Ten times 0.1 is one second; in binary fractions it is a little less."""
    read = read_cast(tmp_path, V3, *['[0.1, "o", "x"]'] * 10, '[0, "o", "y\\n"]')
    assert read.chunks[0]["span"]["timestamp_end"] == 1.0


def test_markers_and_the_end_part_and_a_resize_does_not(tmp_path: Path) -> None:
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
    assert read.told("opened_by") == ["start", "control", "lifecycle"]
    assert [chunk["span"].get("section") for chunk in read.chunks] == [None, ["Second part"], ["Second part"]]
    check_replay(read)


def test_input_is_glued_to_its_output(tmp_path: Path) -> None:
    read = read_cast(tmp_path, V2, '[1, "i", "l"]', '[1.1, "i", "s\\r"]', '[1.2, "o", "README\\r\\n"]')
    assert read.texts == ["[IN] ls\n[OUT] README"]


def test_joined_frames_end_at_a_pause_a_width_and_a_size(tmp_path: Path) -> None:
    pause = read_cast(tmp_path, V3, '[0, "o", "a"]', '[30, "o", "b"]', '[30.001, "o", "c"]')
    assert pause.texts == ["[OUT] ab", "[OUT] c"]
    assert pause.told("opened_by") == ["start", "time"]
    wide = read_cast(tmp_path, V3, *['[25, "o", "a"]'] * 7)
    assert wide.told("event_count") == [1, 1] and wide.texts[1].endswith("[OUT] aa")
    big = read_cast(tmp_path, V3, *[json.dumps([0, "o", "x" * 600])] * 4)
    assert big.told("event_ids") == [["0:0"], ["0:0", "0:3"]]


def test_an_escape_sequence_is_not_parted_from_its_end(tmp_path: Path) -> None:
    frames = [json.dumps([0, "o", "x" * 1799 + "\x1b[38;5"]), json.dumps([0, "o", ";12mred\n"])]
    read = read_cast(tmp_path, V3, *frames)
    assert "".join(read.texts).count("12m") == 0
    check_replay(read)


def test_a_frame_that_goes_back_in_time_is_told(tmp_path: Path) -> None:
    read = read_cast(tmp_path, V2, '[5.0, "o", "later "]', '[1.0, "o", "earlier "]', '[1.0, "o", "b"]')
    assert read.texts == ["[OUT] later earlier b"]
    assert [(left.line, left.code, left.is_failure) for left in read.left_out] == [(3, "EVENT_BACK_IN_TIME", False)]


def test_unknown_codes_are_passed_over_and_told(tmp_path: Path) -> None:
    read = read_cast(tmp_path, V2, '[0, "o", "a"]', '[1, "z", {"some": "thing"}]', '[2, "o", "b"]')
    assert read.texts == ["[OUT] ab"]
    assert [(left.line, left.code, left.is_failure) for left in read.left_out] == [(3, "EVENT_KIND_UNKNOWN", False)]


BAD_HEADERS = {
    "": "is not JSON",
    "[1]": "not a header object",
    "{": "is not JSON",
    '{"version": 1, "width": 80, "height": 24}': "versions 2 and 3",
    '{"width": 80, "height": 24}': "versions 2 and 3",
    '{"version": "2", "width": 80, "height": 24}': "versions 2 and 3",
    '{"version": 2, "width": 80}': "height of the terminal is None",
    '{"version": 2, "width": 0, "height": 24}': "width of the terminal is 0",
    '{"version": 3, "width": 80, "height": 24}': "lacks term",
    '{"version": 3, "term": {"cols": true, "rows": 24}}': "cols of the terminal is True",
    '{"version": 2, "width": 80, "height": 24, "timestamp": "now"}': "timestamp is 'now'",
    '{"version": 2, "width": 80, "height": 24, "title": 5}': "title is 5",
    '{"version": 2, "width": 80, "height": 24, "theme": {"fg": "white"}}': "fg of the theme is 'white'",
    '{"version": 2, "width": 80, "height": 24, "theme": {"fg": "#000000", "bg": "#000000"}}': "palette",
    '{"version": 3, "term": {"cols": 80, "rows": 24, "theme": 3}}': "theme is not an object",
}


@pytest.mark.promise(6)
@pytest.mark.parametrize("header", BAD_HEADERS)
def test_a_bad_header_is_refused(tmp_path: Path, header: str) -> None:
    read = read_cast(tmp_path, header, SECOND)
    assert (read.families, read.codes) == ([], [(1, "RECORDING_MALFORMED")])
    assert BAD_HEADERS[header] in read.left_out[0].reason


BAD_FRAMES = {
    "lol!": "is not JSON",
    '{"o": 1}': "is not a list of time, code and data",
    '[1, "o"]': "is not a list",
    '[1, "o", "x", ""]': "is not a list",
    '["1", "o", "x"]': "the time is '1'",
    '[true, "o", "x"]': "the time is True",
    '[-0.1, "o", "x"]': "the time is -0.1",
    '[1e999999, "o", "x"]': "not a number of seconds",
    '[NaN, "o", "x"]': "NaN is no number",
    '[1, 5, "x"]': "the code is 5",
    '[1, "", "x"]': "the code is ''",
    '[1, "o", true]': "the data of code o is True",
    '[1, "m", null]': "the data of code m is None",
    '[1, "r", "-1x0"]': "the size is '-1x0'",
    '[1, "r", "80"]': "the size is '80'",
}


@pytest.mark.promise(6)
@pytest.mark.parametrize("header", [V2, V3], ids=["v2", "v3"])
@pytest.mark.parametrize("frame", BAD_FRAMES)
def test_a_broken_recording_is_refused_whole(tmp_path: Path, header: str, frame: str) -> None:
    read = read_cast(tmp_path, header, *[SECOND] * 2000, frame, SECOND, policy=Policy(chunks_per_part=1))
    assert (read.families, read.codes) == ([], [(2002, "RECORDING_MALFORMED")])
    (left,) = read.left_out
    assert left.source_uri == "demo.cast" and left.is_failure
    assert BAD_FRAMES[frame] in left.reason


def test_comments_belong_to_version_3(tmp_path: Path) -> None:
    assert read_cast(tmp_path, V3, "# one", SECOND).texts == ["[OUT] ls"]
    assert read_cast(tmp_path, V2, "# one", SECOND).codes == [(2, "RECORDING_MALFORMED")]


def test_bytes_that_are_not_utf8_and_long_lines_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.cast"
    path.write_bytes(V2.encode() + b'\n[1, "o", "\xff"]\n')
    assert "not UTF-8: byte 0xff" in read_file(path).left_out[0].reason
    path.write_bytes(V2.encode() + b'\n[1, "o", "' + b"x" * 9_000_000 + b'"]\n')
    assert "longer than 8 MiB" in read_file(path).left_out[0].reason
    path.write_bytes(b"")
    assert read_file(path).codes == [(1, "RECORDING_MALFORMED")]


def test_every_code_is_explained() -> None:
    assert {"RECORDING_MALFORMED", "EVENT_WITHOUT_TEXT"} <= MEANINGS.keys()


REFUSED = {
    "broken": 3,
    "invalid-code": 3,
    "invalid-data": 3,
    "invalid-resize": 3,
    "invalid-theme": 1,
    "invalid-time-1": 3,
    "invalid-time-2": 3,
    "wrong-event-length": 3,
}


@pytest.mark.parametrize("policy", [Policy(), SMALL], ids=["default", "small"])
def test_real_recordings(shared_data: Path, policy: Policy) -> None:
    files = sorted((shared_data / "casts").rglob("*.cast"))
    assert len(files) > 30
    for path in files:
        if policy is SMALL and path.stem == "big":
            continue  # it has 60,000 chunks then
        read = read_file(path, policy)
        if path.stem in REFUSED:
            assert (read.families, read.codes) == ([], [(REFUSED[path.stem], "RECORDING_MALFORMED")]), path
            continue
        assert not any(left.is_failure for left in read.left_out), path
        assert bool(read.chunks) == (path.stem != "no-events"), path
        assert all(len(text) <= policy.max_chunk_chars for text in read.texts)
        check_replay(read, policy)


def test_a_real_recording_reads_like_its_terminal(shared_data: Path) -> None:
    read = read_file(shared_data / "casts" / "welcome.cast")
    text = "\n".join(read.texts)
    for line in (
        "> # Welcome to asciinema!",
        "> brew install asciinema",
        "==> Pouring asciinema-1.4.0.sierra.bottle.tar.gz",
    ):
        assert f"[OUT] {line}\n" in text
    assert read.told("title")[0] == "Welcome to asciinema!"


def test_a_large_recording_loses_nothing(shared_data: Path) -> None:
    path = shared_data / "casts" / "big.cast"
    read = read_file(path)
    sent = "".join(json.loads(line)[2] for line in path.read_text(encoding="utf-8").splitlines()[1:])
    own = "".join(chunk["text"][chunk["metadata"]["overlap_chars"] :] for chunk in read.chunks)
    assert "".join(own.replace("[OUT]", "").split()) == "".join(sent.split())
