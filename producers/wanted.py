"""Which files a run reads, and as what."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from sqlite3 import Connection

from chunksink.producers.before import Before
from chunksink.producers.detect import look_at
from chunksink.producers.errors import RECORD_FORM_UNKNOWN, SOURCE_EMPTY, IngestRefused, SourceFailed
from chunksink.producers.find import find_sources
from chunksink.producers.folders import Folder, Seen, Shown, is_json, read_on, record_folders
from chunksink.producers.guessed import guessed
from chunksink.producers.kinds import AUTO, Kind, kinds_for, suffixes_of
from chunksink.producers.outputs import Outputs
from chunksink.producers.patterns import Patterns
from chunksink.producers.records.nested import Way
from chunksink.producers.rows.separated import is_separated
from chunksink.producers.sources import Failure, Found, Scope, SourceFile, size_of
from chunksink.producers.tables import below

_NO_FORM = (
    "its first records are of no form that is read here; `--as rows` reads documents, `--as chunks` chunks, and each "
    "says what is missing in them"
)
_NO_ROWS = (
    "its header names no text beside an id, a title or an address; say which column it is (`--field text=NAME`), or "
    "read it as it stands (`--as text`)"
)


@dataclass(frozen=True, slots=True)
class Source(SourceFile):
    """A file to read, what it is called, and what reads it."""

    kind: Kind


class Wanted:
    """What a run reads, in the order of the names, and where it was found."""

    def __init__(self, tables: Connection, found: Found) -> None:
        self._tables, self._found = tables, found
        self._kinds: dict[Kind, int] = {}

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return self._found.scopes

    @property
    def outputs(self) -> tuple[str, ...]:
        return self._found.outputs

    @property
    def other_kinds(self) -> Mapping[str, int]:
        return self._found.other_kinds

    def __len__(self) -> int:
        (count,) = self._tables.execute("select count(kind) from seen").fetchone()
        return int(count)

    def __iter__(self) -> Iterator[Source]:
        kinds = list(self._kinds)
        rows = self._tables.execute("select uri, location, kind from seen where kind is not null order by uri")
        for uri, location, kind in rows:
            yield Source(uri, os.fsdecode(location), kinds[kind])

    def alone(self) -> Iterator[SourceFile]:
        """Files that were named, and lie below no folder that was."""
        prefixes = tuple(scope.prefix for scope in self.scopes)
        for uri, location in self._tables.execute("select uri, location from seen where kind is not null order by uri"):
            if not uri.startswith(prefixes):
                yield SourceFile(uri, os.fsdecode(location))

    def by_kind(self) -> dict[str, int]:
        """How many files are read as what."""
        counted = dict(self._tables.execute("select kind, count(*) from seen where kind is not null group by kind"))
        found: dict[str, int] = {}
        for number, kind in enumerate(self._kinds):
            found[kind.name] = found.get(kind.name, 0) + counted.get(number, 0)
        return dict(sorted(found.items()))

    def size(self) -> int:
        """Bytes of all files."""
        rows = self._tables.execute("select location from seen where kind is not null")
        return sum(size_of(os.fsdecode(location)) for (location,) in rows)

    def get(self, uri: str) -> Source | None:
        row = self._tables.execute(
            "select location, kind from seen where uri = ? and kind is not null", [uri]
        ).fetchone()
        return None if row is None else Source(uri, os.fsdecode(row[0]), list(self._kinds)[row[1]])

    def holds(self, scope: Scope) -> bool:
        """Whether anything of it is read."""
        row = self._tables.execute(
            "select 1 from seen where uri >= ? and uri < ? and kind is not null limit 1", below(scope.prefix)
        ).fetchone()
        return row is not None

    @property
    def failures(self) -> Iterator[Failure]:
        return chain(self._found.failures, self._no_sources(is_failure=True))

    @property
    def left_out(self) -> Iterator[Failure]:
        """What is told and is no failure."""
        return chain(self._found.left_out, self._no_sources(is_failure=False))

    def _no_sources(self, is_failure: bool) -> Iterator[Failure]:
        rows = self._tables.execute(
            "select uri, code, reason from seen where kind is null and is_failure = ? order by uri", [is_failure]
        )
        return (Failure(*row) for row in rows)

    def add(self, file: SourceFile, kind: Kind) -> None:
        self._put(file, self._kinds.setdefault(kind, len(self._kinds)))

    def add_folder(self, folder: Folder) -> None:
        """As one source, in place of the JSON files that are its records."""
        self._tables.execute("delete from seen where uri >= ? and uri < ? and is_json", below(folder.prefix))
        self.add(SourceFile(folder.uri, str(folder.path)), folder.kind)

    def leave_out(self, file: SourceFile, code: str, reason: str, is_failure: bool) -> None:
        self._put(file, None, code, reason, is_failure)

    def _put(self, file: SourceFile, kind: int | None, *why: str | bool) -> None:
        row = (file.uri, os.fsencode(file.location), kind, is_json(file.uri), *(why or (None, None, None)))
        self._tables.execute("insert into seen values (?, ?, ?, ?, ?, ?, ?)", row)


def find_wanted(
    paths: Sequence[Path],
    kind: str,
    kinds: Mapping[str, Kind],
    root: Callable[[Path], Path],
    before: Before,
    tables: Connection,
    outputs: Outputs,
    excluded: Patterns,
    included: Patterns,
    *,
    prunes: bool,
) -> Wanted:
    """Files of one kind, or of every kind that can be told, and folders of records.

    A file that does not tell what it is any more is what it was. What else cannot be told is a failure where it is
    named; in a folder, which may hold other JSON beside records, it is left out.
    """
    if kind != AUTO and kind not in kinds:
        raise IngestRefused(f"{kind!r} is no kind of source; it is one of {', '.join([*kinds, AUTO])}")
    suffixes = suffixes_of(kind, kinds)
    found = find_sources(
        paths,
        tables,
        suffixes=suffixes,
        root=root,
        outputs=outputs,
        excluded=excluded,
        included=included,
        followed=before.was_text if kind == AUTO else None,
        lost=before.was_folder,
        prunes=prunes,
    )
    see = _seen_as(kinds[kind]) if kind != AUTO else _guess(guessed(kinds))
    named = {os.path.abspath(path) for path in paths}  # noqa: PTH100 (a link has its own name)
    wanted, shown = Wanted(tables, found), Shown(tables)
    for file in map(see, found.files):
        if is_json(file.uri):
            shown.add(file)
        is_named = os.path.abspath(file.location) in named  # noqa: PTH100
        if kind == AUTO and is_separated(file.uri) and before.is_text(file.uri):
            wanted.add(file, kinds["text"])
        elif (its_kind := _its_kind(file.kind, partial(before.kind, file.uri))) is not None:
            wanted.add(file, its_kind)
        elif is_separated(file.uri) and not is_named and not file.is_empty:  # --include says so
            wanted.add(file, kinds["text"])
        elif file.failed is not None:
            wanted.leave_out(file, file.failed.code, file.failed.reason, is_failure=True)
        elif file.is_empty:
            wanted.leave_out(file, SOURCE_EMPTY, "it is empty", is_failure=False)
        else:
            reason = _NO_ROWS if is_separated(file.uri) else _no_form(file.within)
            wanted.leave_out(file, RECORD_FORM_UNKNOWN, reason, is_failure=is_named)
    for folder in record_folders(shown, found, before.kind):
        wanted.add_folder(folder)
    return wanted


def _no_form(within: Sequence[Way]) -> str:
    if not within:
        return _NO_FORM
    names = " and ".join("`" + ".".join(way) + "`" for way in within)
    ways = ", ".join("." + "".join(f'["{name}"]' for name in way) + "[]" for way in within)
    return (
        f"its records stand within {names}, and nobody knows what of it is meant: jq -c '{ways}' FILE > FILE.jsonl "
        "takes them out of it"
    )


def _its_kind(seen: Kind | None, was: Callable[[], Kind | None]) -> Kind | None:
    """Few files have to be looked up in the ledger."""
    return read_on(seen, was() if seen is None or seen.name == "chunks" else None)


def _seen_as(kind: Kind) -> Callable[[SourceFile], Seen]:
    return lambda file: Seen(file.uri, file.location, kind, is_value=True)


def _guess(kinds: Mapping[str, Kind]) -> Callable[[SourceFile], Seen]:
    """By the suffix where one kind alone has it, else by what stands in the file. A suffix that no kind has is one of
    plain text: nothing says that what it marks is markup."""

    def see(file: SourceFile) -> Seen:
        fitting = kinds_for(file.location, kinds)
        may_be_rows = is_separated(file.location)
        if len(fitting) < 2 and not may_be_rows:
            return Seen(file.uri, file.location, fitting[0] if fitting else kinds.get("text"))
        try:
            look = look_at(file.path)
        except SourceFailed as failed:
            return Seen(file.uri, file.location, None, failed=failed)
        kind = kinds.get(look.kind) if look.kind else None
        return Seen(file.uri, file.location, kind, look.is_value, look.is_empty, within=look.within)

    return see
