"""What an event adds to a chunk, and where a text can be cut: at the ends of lines, or between characters."""

import re
import unicodedata

from chunksink.producers.recorder.events import Direction

_MARKS = {Direction.INGRESS: "[IN] ", Direction.EGRESS: "[OUT] "}
# Characters after which, or before which, one does not cut: joiners, skin tones, and letters that make flags.
_JOINER = "\u200d"
_HELD = re.compile("[\u200c\u200d\U0001f3fb-\U0001f3ff\U0001f1e6-\U0001f1ff\U000e0020-\U000e007f]")
_LOOK_AROUND = 64
# The same in every Python, so that the same cut is.
_unicode = unicodedata.ucd_3_2_0


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
