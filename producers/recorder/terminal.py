"""From what a terminal was sent to what a person reads: the text normalisation of recorder events.

In this order: control sequences (CSI, OSC, DCS and their like, single escapes; also cut-off ones) go; line ends and
the characters that the chunk contract takes for such become `\\n`, a run of carriage returns with it; a backspace moves
back, and what follows writes over; other control characters and byte order marks go; white space at the end of each
line and of the text goes. A lone carriage return parts lines: each state of a progress bar stays.
Spaces inside lines, blank lines and indentation stay. No other cursor movement is followed: this is no emulator.
"""

import re
import unicodedata

from producers.recorder.events import Direction

# Each alternative takes what it can and never gives back, so that no text takes more than one pass.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\r\n]*+(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])(?:[^\x07\x1b\x9c\r\n]*+(?:\x07|\x1b\\|\x9c))?"
    r"|\x1b[ -/]*+[0-~]?"
)
_LINE_END = re.compile("\r+\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+)?\Z")
_MARKS = {Direction.INGRESS: "[IN] ", Direction.EGRESS: "[OUT] "}
# Characters after which, or before which, one does not cut: joiners, skin tones, and letters that make flags.
_JOINER = "\u200d"
_HELD = re.compile("[\u200c\u200d\U0001f3fb-\U0001f3ff\U0001f1e6-\U0001f1ff\U000e0020-\U000e007f]")
_LOOK_AROUND = 64
# The same in every Python, so that the same cut is.
_unicode = unicodedata.ucd_3_2_0


def readable(text: str) -> str:
    """The text without terminal control; `""` where nothing is left to read."""
    text = _SEQUENCE.sub("", text)
    text = _LINE_END.sub("\n", text)
    if "\b" in text:
        text = "\n".join(_write_over(line) for line in text.split("\n"))
    text = _CONTROL.sub("", text)
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip()


def _write_over(line: str) -> str:
    cells: list[str] = []
    at = 0
    for character in line:
        if character == "\b":
            at = max(0, at - 1)
        else:
            cells[at : at + 1] = character
            at += 1
    return "".join(cells)


def is_unfinished(text: str) -> bool:
    """True where the text ends inside an escape sequence."""
    return _UNFINISHED.search(text[-_LOOK_AROUND:]) is not None


def contribution(direction: Direction, text: str) -> str:
    """What an event adds to a chunk: the marker of its direction, and its readable text."""
    mark = _MARKS[direction]
    return (mark.rstrip() if text.startswith("\n") else mark) + text


def find_end(text: str, start: int, limit: int) -> int:
    """Where `text[start:]` is cut, by `limit`: at a line end in the second half, else between characters."""
    line_end = text.rfind("\n", start + (limit - start) // 2, limit + 1)
    if line_end > start:
        return line_end
    for at in range(limit, max(start, limit - _LOOK_AROUND), -1):
        if is_between_characters(text, at):
            return at
    return limit


def find_start(text: str, at: int) -> int:
    """The first place from `at` on where the end of a text can begin: between characters, and not with white space."""
    for place in range(at, min(len(text), at + _LOOK_AROUND)):
        if is_between_characters(text, place):
            at = place
            break
    return skip_space(text, at)


def skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def is_between_characters(text: str, at: int) -> bool:
    """False inside of what a reader takes for one character: letters with their marks, joined emoji, flags."""
    if at in (0, len(text)):
        return True
    following = text[at]
    if following.isascii():
        return text[at - 1] != _JOINER
    return not (_HELD.match(following) or text[at - 1] == _JOINER or _unicode.category(following).startswith("M"))
