"""The elements of a JSON array by their places, as many programs write records: all of them in one `.json` file.

Nothing is parsed here, and memory holds one block of the file. What stands behind the array comes as an element that
no parser takes, so that somebody is told.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from chunksink.chunkbus import findings
from chunksink.chunkbus.patterns import for_good
from chunksink.producers.errors import SourceFailed

_BLOCK = 2**20
_BEGINNING = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?=\[\s*[{\]])")
_QUOTED = re.compile(for_good(r'[^"\\]++|\\.').encode() + rb'("?)', re.DOTALL)
_BETWEEN = re.compile(rb'["\[\]{},]')
_WITHIN = re.compile(rb'["\[\]{}]')  # commas part nothing there


def begins(head: bytes) -> int | None:
    """Where the array of records is whose file begins so, if it is one: a log's `[INFO] started` is none."""
    found = _BEGINNING.match(head)
    return found and found.end()


def elements(file: BinaryIO, start: int) -> Iterator[tuple[int, int]]:
    """Where those of the array that begins at `start` begin and end, with the white space around them.

    The file may be read elsewhere meanwhile. Raises SourceFailed at its end where the array has none.
    """
    depth, is_quoted, begun = 0, False, start
    position = at = start  # of the block, and of what is looked at next
    while block := _read(file, position):
        while True:
            if is_quoted:
                quoted = _QUOTED.match(block, at - position)
                assert quoted is not None
                at = position + quoted.end()
                is_quoted = not quoted[1]
                if is_quoted:
                    at += 2 * (at < position + len(block))  # a last backslash, and what it escapes in the next block
                    break
            found = (_BETWEEN if depth < 2 else _WITHIN).search(block, at - position)
            if found is None:
                break
            sign, at = found[0], position + found.end()
            if sign == b'"':
                is_quoted = True
            elif sign in b"[{":
                depth += 1
                if depth == 1 and sign == b"[":
                    yield begun, at - 1  # words before another one
                    begun = at
            else:
                depth -= sign in b"]}"
                if sign == b"," or depth <= 0:
                    yield begun, at - 1
                    begun = at
        position += len(block)
        at = max(at, position)
    if begun < position:
        yield begun, position
    if depth != 0 or is_quoted:
        raise SourceFailed(findings.JSON_PARSE, "its brackets do not match: the file may be cut off")


def _read(file: BinaryIO, position: int) -> bytes:
    file.seek(position)
    return file.read(_BLOCK)
