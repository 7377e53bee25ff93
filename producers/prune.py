"""Which families' sources have vanished. Asked for by name, since a folder that is not mounted looks just like that."""

from collections.abc import Callable, Collection, Iterator

from producers.errors import IngestRefused
from producers.families import Family
from producers.gone import Gone
from producers.shelves import Shelves
from producers.sources import Found, Scope
from producers.wanted import Wanted


def refuse_empty(wanted: Wanted) -> None:
    """Every folder named must hold a source and be readable to its last folder."""
    for failure in wanted.found.failures:
        if failure.source_uri.endswith("/"):
            raise IngestRefused(
                f"{failure.source_uri} cannot be listed, so nobody knows what vanished there; nothing was written. "
                "Mend its permissions, or leave --prune out"
            )
    for scope in wanted.found.scopes:
        if not any(source.uri.startswith(scope.prefix) for source in wanted.sources):
            raise IngestRefused(
                f"{scope.folder} holds no source, and --prune would withdraw all that came from it; nothing was "
                "written. Is it mounted? Leave --prune out, or see `chunksink retire-partition`"
            )


def vanished(
    found: Found, shelves: Shelves, stands_for: Callable[[str], bool], gone: Gone, tenant: str | None
) -> Iterator[tuple[str, Family]]:
    """Partition and family of each source that is not there any more, or that its file of records holds no more.

    `stands_for` says whether a source of this run has a word in the family of a key; `gone` knows the files that were
    read whole.
    """
    for key, existing in shelves.existing.items():
        for family in existing.families.values():
            if family.tenant != tenant or stands_for(family.key) or family.origin is None:
                continue
            if gone.was_read(family.origin) or _has_vanished(family.origin, found.scopes):
                yield key, family


def _has_vanished(origin: str, scopes: Collection[Scope]) -> bool:
    paths = [path for scope in scopes if (path := scope.path_of(origin)) is not None]
    return bool(paths) and not any(path.exists() or path.is_symlink() for path in paths)
