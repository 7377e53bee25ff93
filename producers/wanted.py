"""Which files a run reads, and as what."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from producers.errors import RECORD_FORM_UNKNOWN, IngestRefused
from producers.kinds import AUTO, Kind, kind_of, suffixes_of
from producers.sources import Failure, Found, Scope, find_sources


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, what it is called, and what reads it."""

    uri: str
    path: Path
    kind: Kind


@dataclass(frozen=True)
class Wanted:
    """What a run reads, in the order of the names, and where it was found."""

    sources: tuple[Source, ...]
    found: Found


def find_wanted(paths: Sequence[Path], kind: str, kinds: Mapping[str, Kind], base: Path | None) -> Wanted:
    """Files of one kind, or of every kind that can be told.

    A folder may hold other JSON beside records: it is passed over there, and a failure only where it is named.
    """
    if kind != AUTO and kind not in kinds:
        raise IngestRefused(f"{kind!r} is no kind of source; it is one of {', '.join([*kinds, AUTO])}")
    found = find_sources(paths, suffixes=suffixes_of(kind, kinds), base=base)
    named = {os.path.abspath(path) for path in paths}  # noqa: PTH100 (a link has its own name)
    sources: list[Source] = []
    failures = list(found.failures)
    for file in found.files:
        its_kind = kinds[kind] if kind != AUTO else kind_of(file.path, kinds)
        if its_kind is not None:
            sources.append(Source(file.uri, file.path, its_kind))
        elif os.path.abspath(file.path) in named:  # noqa: PTH100
            reason = "its first records are of no form that is read here; say what it is with --as"
            failures.append(Failure(file.uri, RECORD_FORM_UNKNOWN, reason))
    if kind != AUTO and kinds[kind].folders:
        sources = _with_folders(sources, found.scopes)
    return Wanted(tuple(sources), Found((), tuple(failures), found.scopes))


def _with_folders(sources: list[Source], scopes: Sequence[Scope]) -> list[Source]:
    """JSON files of a folder that was named are records of one source, since a family may lie in several."""
    folders: dict[str, Source] = {}
    for source in sources:
        scope = next((scope for scope in scopes if source.uri.startswith(scope.prefix)), None)
        if scope is None or not source.uri.lower().endswith(".json"):
            folders[source.uri] = source
        else:
            uri = scope.prefix or f"{scope.folder.resolve().name}/"
            folders[uri] = Source(uri, scope.folder, source.kind)
    return [folders[uri] for uri in sorted(folders)]
