"""What the names of sources begin below: as when their folder was read into this bus before, else as it is called."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from producers.sources import Scope


def root_of(path: Path, base: Path | None, known: Iterable[Scope]) -> Path:
    """The folder below which a path that was named has its name; `known` folders and files were read before.

    So one file of a folder, and a part of it, replace what the whole of it gave, and do not stand beside it.
    """
    if base is not None:
        return base
    named = Path(os.path.abspath(path))  # noqa: PTH100 (a link has its own name)
    for place in sorted(known, key=lambda place: len(place.folder.parts), reverse=True):
        root = _root(place)
        if root is not None and named.is_relative_to(place.folder):
            return root
    return named.parent


def _root(place: Scope) -> Path | None:
    """None where its sources are not called by where it lies, for it was reached by a link."""
    called = PurePosixPath(place.prefix).parts
    kept = len(place.folder.parts) - len(called)
    return Path(*place.folder.parts[:kept]) if place.folder.parts[kept:] == called else None
