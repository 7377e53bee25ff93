"""What the names of sources begin below: as when their folder was read into this bus before, else as it is called."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from producers.sources import Scope


def root_of(path: Path, base: Path | None, known: Iterable[Scope]) -> Path:
    """The folder below which a path that was named has its name; `known` folders and files were read before.

    So one file of a folder, and a part of it, replace what the whole of it gave, and do not stand beside it; nor does
    what lies around a folder that was read. A file has the name that it would have with its folder.
    """
    if base is not None:
        return base
    named = Path(os.path.abspath(path))  # noqa: PTH100 (a link has its own name)
    lies_at = named.parent.resolve() / named.name
    # The nearest folder; of several names for it the one that it has by default.
    places = sorted(known, key=lambda place: (-len(place.folder.parts), not _is_usual(place)))
    for place in places:
        if lies_at.is_relative_to(place.folder):
            called = (*PurePosixPath(place.prefix).parts, *lies_at.relative_to(place.folder).parts)
            kept = len(named.parts) - len(called)
            if named.parts[kept:] == called:
                return Path(*named.parts[:kept])
    for place in reversed(places):  # else a part of it was read before: the largest
        called = PurePosixPath(place.prefix).parts
        if place.folder.is_relative_to(lies_at) and place.folder.relative_to(lies_at).parts == called:
            return named
    return named.parent if named.is_dir() else named.parent.parent


def _is_usual(place: Scope) -> bool:
    return place.prefix.rstrip("/") == place.folder.name
