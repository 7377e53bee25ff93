"""Converts terminal output to readable text, for recorder events and for logs with colours.

Each state of a progress bar is kept as a line. Cursor movements are not followed: this is not an emulator.
"""

import re

# Quantifiers are possessive, so that matching takes linear time.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\r\n]*+(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])(?:[^\x07\x1b\x9c\r\n]*+(?:\x07|\x1b\\|\x9c))?"
    r"|\x1b[ -/]*+[0-~]?"
)
_LINE_END = re.compile("\r+\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+)?\Z")
_MAX_UNFINISHED = 64


def readable(text: str) -> str:
    """The text without control sequences; `""` if nothing is left to read."""
    text = _SEQUENCE.sub("", text)
    text = _LINE_END.sub("\n", text)
    if "\b" in text:
        text = "\n".join(_overwrite(line) if "\b" in line else line for line in text.split("\n"))
    text = _CONTROL.sub("", text)
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip()


def is_unfinished(text: str) -> bool:
    """Whether the text ends after ESC or inside a CSI sequence (`ESC [ ...`)."""
    return _UNFINISHED.search(text[-_MAX_UNFINISHED:]) is not None


def _overwrite(line: str) -> str:
    cells: list[str] = []
    cursor = 0
    for character in line:
        if character == "\b":
            cursor = max(0, cursor - 1)
        else:
            cells[cursor : cursor + 1] = character
            cursor += 1
    return "".join(cells)
