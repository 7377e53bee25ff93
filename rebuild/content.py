"""What a family says, letter for letter: by this it is known after its partition was written anew for others' sake."""

from hashlib import blake2b

_BYTES = 16


def hash_of_line(line: bytes) -> bytes:
    return blake2b(line, digest_size=_BYTES).digest()


class ContentOf:
    """`content_of(line)` in SQL: one hash for lines in any order, as that of a family's chunks is nothing. Null where
    one is null."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._is_known = True

    def step(self, line: bytes | None) -> None:
        if line is None:
            self._is_known = False
        else:
            self._lines.append(line)

    def finalize(self) -> bytes | None:
        return hash_of_line(b"".join(sorted(self._lines))) if self._is_known else None
