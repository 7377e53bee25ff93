"""What a type checker knows of the public names: `make lint` checks it, nothing runs it."""

from typing import assert_type

import chunksink
from chunksink import Index
from chunksink.rebuild.report import RunReport


def synced(index: chunksink.Index, other: Index) -> int:
    assert_type(chunksink.open("chunksink.toml"), Index)
    assert_type(index.sync(), RunReport)
    return len(index.search("a")) + len(other.search("b"))


def unknown() -> object:
    return chunksink.Nonsense  # type: ignore[attr-defined]
