"""Which files need not be read, or not be opened, because what they gave stands as it should."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, cast

import orjson

from chunksink.chunkbus.ledger import Ledger
from chunksink.chunkbus.signature import Signature
from chunksink.producers.contents import digest_source
from chunksink.producers.errors import WITHOUT_TEXT, SourceFailed
from chunksink.producers.families import Family, key_of_source
from chunksink.producers.given import Given
from chunksink.producers.kinds import Chunker
from chunksink.producers.memory import Gave, Memory
from chunksink.producers.placement import Placement
from chunksink.producers.produced import RecordReader
from chunksink.producers.reading import Job
from chunksink.producers.report import Outcome
from chunksink.producers.shelves import Shelves
from chunksink.producers.wanted import Source, Wanted

Versions = tuple[str, str, str, str]
Reading = tuple[str | None, ...]
"""Which bytes were read, and by which versions."""
NOTHING: Mapping[str, int] = {}
_FILES_AT_HAND = 1024


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done with a source: its job, or how it ended without one.

    `number` is the source's in the run: by it is known which families stand for one that is unchanged. `versions` are
    what the ledger says of the reading.
    """

    number: int
    source: Source
    versions: Versions
    signature: Signature | None = None
    job: Job | None = None
    outcome: Outcome | None = None
    checksum: str | None = None
    codes: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    is_in_ledger: bool = False
    is_hashed: bool = False
    failed: SourceFailed | None = None


class Skipping:
    """Compares sources with the ledger, with what is remembered, and with what stands in the partitions."""

    def __init__(
        self,
        ledger: Ledger,
        memory: Memory,
        shelves: Shelves,
        placement: Placement,
        tenant: str | None,
        wanted: Wanted,
        given: Given,
        *,
        trust_memory: bool,
    ) -> None:
        self._ledger, self._memory, self._shelves, self._placement = ledger, memory, shelves, placement
        self._tenant, self._wanted, self._given, self._trust_memory = tenant, wanted, given, trust_memory
        self._readers: dict[str, Chunker | RecordReader | SourceFailed] = {}
        self._versions: dict[str, tuple[Versions, Versions]] = {}
        self._known = lru_cache(_FILES_AT_HAND)(self._known_of)

    def decide(self, number: int, source: Source) -> Decision:
        reader = self._reader(source)
        if isinstance(reader, SourceFailed):
            return Decision(number, source, ("", "", "", ""), failed=reader)
        versions, in_ledger = self._versions[source.kind.name]
        signature, checksum = self._look(source)
        begun = Decision(number, source, in_ledger, signature, checksum=checksum)
        if source.kind.records is not None:
            return self._decide_records(begun, cast(RecordReader, reader))
        return self._decide_document(begun, cast(Chunker, reader), versions)

    def _reader(self, source: Source) -> Chunker | RecordReader | SourceFailed:
        kind = source.kind
        if kind.name not in self._readers:
            try:
                reader = self._readers[kind.name] = kind.make()
                versions = (*reader.parser, *reader.canonicalizer)
                self._versions[kind.name] = (versions, self._in_ledger(versions))
            except SourceFailed as failed:
                self._readers[kind.name] = failed
        return self._readers[kind.name]

    def _in_ledger(self, versions: Versions) -> Versions:
        """Whose the chunks are is an option like any other: it counts as the canonicaliser's version."""
        return versions if self._tenant is None else (*versions[:3], f"{versions[3]};tenant={self._tenant}")

    def _decide_document(self, begun: Decision, chunker: Chunker, versions: Versions) -> Decision:
        source, checksum = begun.source, begun.checksum
        family = self._shelves.find(key_of_source(source.uri, self._tenant))
        standing = family.version[0] if family is not None and family.version[1:] == versions else None
        last = self._ledger.last_success(source.uri, self._placement.name)
        attempt = last if _is_of(last, begun) else None
        if family is not None and attempt is not None and standing is not None and standing == checksum:
            self._given.put(begun.number, family.key)
            return replace(begun, outcome=Outcome.UNCHANGED, codes=codes_in(attempt), is_in_ledger=True)
        if family is None and attempt is not None and attempt["error_type"] in WITHOUT_TEXT:
            return replace(begun, outcome=Outcome.EMPTY, codes={attempt["error_type"]: 1}, is_in_ledger=True)
        told = last["source_checksum"] if last is not None and read_as(last)[1:] == begun.versions else None
        job = Job(source.uri, source.location, source.kind.source_type, chunker, None, standing=standing, told=told)
        return replace(begun, job=job)

    def _decide_records(self, begun: Decision, records: RecordReader) -> Decision:
        source = begun.source
        gave = self._memory.gave(source.uri, self._tenant)
        if gave is not None and self._stands(gave, begun.number, source):
            if begun.checksum is None:
                begun = replace(begun, checksum=_checksum(source), is_hashed=True)
            attempt = self._ledger.last_success(source.uri, self._placement.name)
            if attempt is not None and _is_of(attempt, begun) and gave.reading == read_as(attempt):
                unchanged = Outcome.UNCHANGED if gave.families else Outcome.EMPTY
                return replace(begun, outcome=unchanged, codes=codes_in(attempt), is_in_ledger=True)
        self._given.forget(begun.number)
        kind = source.kind
        job = Job(source.uri, source.location, kind.source_type, None, records, may_grow=kind.may_grow)
        return replace(begun, job=job)

    def _stands(self, gave: Gave, number: int, source: Source) -> bool:
        """All that the source gave; False also where another process notes meanwhile that it gives something else."""
        families = 0
        for key, place in self._memory.families_given(gave):
            if not self._stands_for(key, source):
                return False
            self._given.put(number, key, place)
            families += 1
        return families == gave.families

    def _stands_for(self, key: str, source: Source) -> bool:
        """Its own, or that of a later file which gives it too."""
        family: Family | None = self._shelves.find(key)
        if family is None or family.origin is None or family.origin < source.uri:
            return False
        return family.origin == source.uri or self._gives(family.origin, key)

    def _gives(self, uri: str, key: str) -> bool:
        """False also where that is not known before it is read: who asks is then read as well."""
        is_known, gave = self._known(uri)
        return not is_known or (gave is not None and self._memory.gives(gave, key))

    def _known_of(self, uri: str) -> tuple[bool, Gave | None]:
        """Whether it is known what the file gives, and that. Of a document nothing is remembered, for it can give
        nothing else."""
        source = self._wanted.get(uri)
        if source is None:
            return True, None
        gave = self._memory.gave(uri, self._tenant)
        if gave is None or isinstance(self._reader(source), SourceFailed):
            return False, None
        reading = (self._look(source)[1] or _checksum(source), *self._versions[source.kind.name][1])
        return True, gave if gave.reading == reading else None

    def _look(self, source: Source) -> tuple[Signature | None, str | None]:
        """The file's signature, and the checksum that it stands for where it is known."""
        try:
            status = os.stat(source.location)  # noqa: PTH116
            signature = Signature.of(status)
        except OSError:
            return None, None  # whoever reads it says why it cannot be read
        is_proof = self._trust_memory and stat.S_ISREG(status.st_mode)  # a folder's times tell nothing of its files
        return signature, self._memory.checksum(source.location, signature) if is_proof else None


def read_as(attempt: dict[str, Any]) -> Reading:
    """Bytes and versions of an attempt of the ledger."""
    names = ("source_checksum", "parser_name", "parser_version", "canonicalizer_name", "canonicalizer_version")
    return tuple(attempt[name] for name in names)


def _is_of(attempt: dict[str, Any] | None, begun: Decision) -> bool:
    """Whether it was one at just these bytes, by these versions."""
    return attempt is not None and read_as(attempt) == (begun.checksum, *begun.versions)


def codes_in(attempt: dict[str, Any] | None) -> Mapping[str, int]:
    """What an attempt of the ledger tells by code."""
    return orjson.loads(attempt["left_out"]) if attempt is not None and attempt["left_out"] else NOTHING


def _checksum(source: Source) -> str | None:
    try:
        return digest_source(source.path)[0]
    except (OSError, SourceFailed):
        return None
