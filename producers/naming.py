"""What the names of sources begin below: as when their folder was read into this bus before, else as it is called."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from chunksink.producers.sources import Scope


def root_of(path: Path, base: Path | None, known: Iterable[Scope]) -> Path:
    """The folder below which a path that was named has its name; `known` folders and files were read before.

    So one file of a folder, and a part of it, replace what the whole of it gave, and do not stand beside it. A file has
    the name that it would have with its folder.
    """
    if base is not None:
        return base
    named = Path(os.path.abspath(path))  # noqa: PTH100 (a link has its own name)
    lies_at = named.parent.resolve() / named.name
    # The nearest folder; of several names for it the one that it has by default.
    for place in sorted(known, key=lambda place: (-len(place.folder.parts), not _is_usual(place))):
        if lies_at.is_relative_to(place.folder):
            called = (*PurePosixPath(place.prefix).parts, *lies_at.relative_to(place.folder).parts)
            kept = len(named.parts) - len(called)
            if named.parts[kept:] == called:
                return Path(*named.parts[:kept])
    return named.parent if named.is_dir() else named.parent.parent


def _is_usual(place: Scope) -> bool:
    return place.prefix.rstrip("/") == place.folder.name
