"""From what a terminal was sent to what a person reads: the text of recorder events, and of logs with colours in them.

In this order: control sequences (CSI, OSC, DCS and their like, single escapes; also cut-off ones) go; line ends and
the characters that the chunk contract takes for such become `\\n`, a run of carriage returns with it; a backspace moves
back, and what follows writes over; other control characters and byte order marks go; white space at the end of each
line and of the text goes. A lone carriage return parts lines: each state of a progress bar stays.
Spaces inside lines, blank lines and indentation stay. No other cursor movement is followed: this is no emulator.
"""

import re

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
_LOOK_BACK = 64


def readable(text: str) -> str:
    """The text without terminal control; `""` where nothing is left to read."""
    text = _SEQUENCE.sub("", text)
    text = _LINE_END.sub("\n", text)
    if "\b" in text:
        text = "\n".join(_write_over(line) if "\b" in line else line for line in text.split("\n"))
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
    return _UNFINISHED.search(text[-_LOOK_BACK:]) is not None
