"""Lines for people: they fit the terminal, and shortened lists end with the number of items left out."""

import time
import unicodedata

import pytest

from chunksink.command_line import output
from chunksink.command_line.commands import doctor
from chunksink.command_line.output import first, labelled, wrapped
from tests.chunksink.shell import Shell
from tests.support.bus import source

LONG = "word " * 30


@pytest.mark.parametrize(
    ("line", "indent"),
    [(LONG, 2), (labelled("label", LONG), 12), (f"  {LONG}", 4), (f"ok    sink fts       {LONG}", 21)],
)
def test_wrapped_line_continues_below_its_last_column(line: str, indent: int) -> None:
    lines = wrapped(line.strip("\n"), 80).split("\n")
    assert len(lines) > 1
    assert all(len(each) <= 80 for each in lines)
    assert {len(each) - len(each.lstrip()) for each in lines[1:]} == {indent}
    assert " ".join(" ".join(lines).split()) == " ".join(line.split())


@pytest.mark.parametrize(
    ("line", "width"),
    [
        ("   電池を充電するときは、必ず「付属」のアダプターを使用してください。", 26),
        ("   배터리를 충전할 때는 반드시 함께 제공된 어댑터를 사용하십시오", 26),
        ("   เมื่อชาร์จแบตเตอรี่โปรดใช้อะแดปเตอร์ที่ให้มาเท่านั้น", 15),
    ],
)
def test_wrapped_line_of_wide_characters_fits_the_columns(line: str, width: int) -> None:
    lines = wrapped(line, width, prose=True).split("\n")
    assert [len(each) - len(each.lstrip()) for each in lines] == [3, *[5] * (len(lines) - 1)]
    columns = [sum(1 + (char > "\u3000") for char in each if unicodedata.category(char) != "Mn") for each in lines]
    assert max(columns) <= width
    assert min(columns[:-1]) > width - 10
    assert not any(each.strip()[0] in "、。」ี่" or each[-1] in "「เ" for each in lines)
    assert "".join("".join(lines).split()) == "".join(line.split())


def test_wrapped_keeps_long_words_whole_and_pipes_as_they_are() -> None:
    for path in ("/a/very/long/path" * 10, "/長い/名前.md" * 10):
        assert path in wrapped(f"the file {path}", 80).split("\n")[1]
    assert wrapped(LONG, None) == LONG


@pytest.mark.parametrize("prose", [True, False])
def test_spaces_at_the_end_of_a_line_take_no_time(prose: bool) -> None:
    began = time.process_time()
    assert wrapped("a" + " " * 30_000, 80, prose=prose) == "a"
    assert time.process_time() - began < 2  # quadratic time would take several seconds


def test_first_counts_all_that_is_left_out() -> None:
    assert list(first(["a", "b"], 1, total=20_000)) == ["a", "... and 19,999 more"]
    assert list(first(["a", "b"], None)) == ["a", "b"]


def test_json_escapes_names_that_are_not_utf8(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    assert quick_shell("backup", "--json", "b\udcff").json["file"] == "b\\udcff"
    found = quick_shell("doctor", "--json", "--home", "h\udcff").json
    assert any("h\\udcff" in check["found"] for check in found)


@pytest.mark.parametrize("command", ["sync", "status", "plan", "verify", "runs", "validate", "dead-letters", "doctor"])
def test_commands_fit_eighty_columns(command: str, quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    for module in (output, doctor):
        monkeypatch.setattr(module, "columns", lambda **_: 80)
    ended = quick_shell(command)
    words = {word for line in (ended.out + ended.err).splitlines() if len(line) > 80 for word in [line.strip()]}
    assert all(" " not in word for word in words), "only one long word may be wider"


def test_errors_beyond_the_first_are_counted(quick_shell: Shell) -> None:
    records = source("a.md", *(f"text {number}" for number in range(300)))
    quick_shell.commit("p1", records)
    file = quick_shell.root.chunks_file("p1")
    file.write_bytes(file.read_bytes().replace(b'"text":', b'"txet":'))
    ended = quick_shell("sync", "--json")
    assert ended.json["errors"] >= 300
    printed = quick_shell("sync")
    assert f"... and {ended.json['errors'] - 5:,} more" in printed.err
