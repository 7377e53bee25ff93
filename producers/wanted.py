"""Which files a run reads, and as what."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from chunkbus.ledger import Ledger
from producers.detect import look_at
from producers.errors import RECORD_FORM_UNKNOWN, SOURCE_EMPTY, IngestRefused, SourceFailed
from producers.folders import Former, Seen, above_of, record_folders
from producers.guessed import guessed
from producers.kinds import AUTO, Kind, kinds_for, suffixes_of
from producers.sources import Failure, Found, SourceFile, find_sources


@dataclass(frozen=True, slots=True)
class Source(SourceFile):
    """A file to read, what it is called, and what reads it."""

    kind: Kind


@dataclass(frozen=True)
class Wanted:
    """What a run reads, in the order of the names, and where it was found."""

    sources: tuple[Source, ...]
    found: Found


def find_wanted(
    paths: Sequence[Path], kind: str, kinds: Mapping[str, Kind], base: Path | None, former: Former
) -> Wanted:
    """Files of one kind, or of every kind that can be told, and folders of records.

    A file that does not tell what it is any more is what it was. What else cannot be told is a failure where it is
    named; in a folder, which may hold other JSON beside records, it is left out.
    """
    if kind != AUTO and kind not in kinds:
        raise IngestRefused(f"{kind!r} is no kind of source; it is one of {', '.join([*kinds, AUTO])}")
    found = find_sources(paths, suffixes=suffixes_of(kind, kinds), base=base)
    see = _seen_as(kinds[kind]) if kind != AUTO else _guess(guessed(kinds))
    seen = [see(file) for file in found.files]
    folders = record_folders(seen, found, former)
    named = {os.path.abspath(path) for path in paths}  # noqa: PTH100 (a link has its own name)
    sources = [Source(folder.uri, str(folder.path), folder.kind) for folder in folders]
    prefixes = {folder.prefix for folder in folders}
    failures, left_out = list(found.failures), list(found.left_out)
    for file in seen:
        if file.uri.lower().endswith(".json") and not prefixes.isdisjoint(above_of(file.uri)):
            continue
        if (its_kind := file.kind or former(file.uri)) is not None:
            sources.append(Source(file.uri, file.location, its_kind))
        elif file.failed is not None:
            failures.append(Failure(file.uri, file.failed.code, file.failed.reason))
        elif file.is_empty:
            left_out.append(Failure(file.uri, SOURCE_EMPTY, "it is empty"))
        else:
            reason = "its first records are of no form that is read here; say what it is with --as"
            is_named = os.path.abspath(file.location) in named  # noqa: PTH100
            (failures if is_named else left_out).append(Failure(file.uri, RECORD_FORM_UNKNOWN, reason))
    sources.sort(key=lambda source: source.uri)
    return Wanted(tuple(sources), replace(found, files=(), failures=tuple(failures), left_out=tuple(left_out)))


def _seen_as(kind: Kind) -> Callable[[SourceFile], Seen]:
    return lambda file: Seen(file.uri, file.location, kind, is_value=True)


def _guess(kinds: Mapping[str, Kind]) -> Callable[[SourceFile], Seen]:
    """By the suffix where one kind alone has it, else by what stands in the file."""

    def see(file: SourceFile) -> Seen:
        fitting = kinds_for(file.location, kinds)
        if len(fitting) < 2:
            return Seen(file.uri, file.location, fitting[0] if fitting else kinds.get("markdown"))
        try:
            look = look_at(file.path)
        except SourceFailed as failed:
            return Seen(file.uri, file.location, None, failed=failed)
        kind = kinds.get(look.kind) if look.kind else None
        return Seen(file.uri, file.location, kind, look.is_value, look.is_empty)

    return see


def former_kinds(ledger: Ledger, partition: str, kinds: Mapping[str, Kind]) -> Former:
    """As the ledger tells of files of records that went to this partition, or by this rule."""

    @cache
    def parsers() -> dict[str, Kind]:
        return {kind.records().parser[0]: kind for kind in guessed(kinds).values() if kind.records is not None}

    def former(uri: str) -> Kind | None:
        attempt = ledger.last_attempt(uri, partition)
        return None if attempt is None else parsers().get(attempt["parser_name"])

    return former
