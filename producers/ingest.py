"""From files to one partition: what changed is chunked, what did not is carried over, what fails keeps its chunks.

A source is skipped while its family stands in the valid partition with the same checksum, parser and canonicaliser;
the ledger records every attempt, and gets the row that a kill after the commit has cost it. Order, and so every
byte but times and run ids, follows from the sources' names alone. Sources that vanished keep their chunks.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from chunkbus.canonical import sha256_hex
from chunkbus.chunk import Record
from chunkbus.layout import BusRoot
from chunkbus.ledger import Attempt, Ledger, Reading, Status
from chunkbus.manifest import Manifest, ManifestProducer
from chunkbus.runlog import new_run_id, utc_now
from chunkbus.writer import PartitionWriter
from producers.errors import SOURCE_EMPTY, SourceFailed
from producers.links import links_file, write_links
from producers.markdown import MarkdownChunker, SourceVersion
from producers.partition import Family, FamilyReader, key_of_source, next_created_at, read_existing
from producers.report import IngestReport, Outcome, Progress
from producers.sources import Failure, SourceFile, find_sources, read_source

MARKDOWN_SUFFIXES = (".md", ".markdown")
PRODUCER_NAME = "chunksink-markdown"
_LISTED_SOURCES = 1000


class Chunker(Protocol):
    """Cuts one source. Its parser and canonicaliser say what it does: while they are the same, so is its work."""

    @property
    def parser(self) -> tuple[str, str]:
        """Name and version."""

    @property
    def canonicalizer(self) -> tuple[str, str]:
        """Name and version, with every policy and option that moves a boundary."""

    def chunks(self, data: bytes, source: SourceVersion, *, created_at: str, producer: Record) -> list[Record]:
        """The source's chunks in order. Raises SourceFailed."""


def ingest_markdown(
    paths: Sequence[Path],
    root: BusRoot,
    ledger: Ledger,
    *,
    key: str = "markdown",
    base: Path | None = None,
    tenant: str | None = None,
    chunker: Chunker | None = None,
    run_id: str | None = None,
    now: str | None = None,
    on_progress: Callable[[Progress], object] = lambda _progress: None,
) -> IngestReport:
    """Reads Markdown below these paths into one partition.

    A source is called by its path below `base`; else by the name of the folder named and its path below it, so that
    the name is the same from wherever the folder is reached; a file named by itself by its file name.
    """
    found = find_sources(paths, suffixes=MARKDOWN_SUFFIXES, base=base)
    with PartitionWriter(root, key) as writer, FamilyReader(root, key) as reader:
        ingest = _Ingest(root, key, writer, reader, ledger, chunker or MarkdownChunker(), tenant, run_id, now)
        ingest.read(found.files, found.failures, on_progress)
        return ingest.finish()


class _Ingest:
    """One run over one partition, under its writer's lock."""

    def __init__(
        self,
        root: BusRoot,
        key: str,
        writer: PartitionWriter,
        reader: FamilyReader,
        ledger: Ledger,
        chunker: Chunker,
        tenant: str | None,
        run_id: str | None,
        now: str | None,
    ) -> None:
        self._root, self._key, self._writer, self._reader, self._ledger = root, key, writer, reader, ledger
        self._chunker, self._tenant = chunker, tenant
        self._run_id = run_id or new_run_id()
        self._existing = read_existing(root, key)
        self._created_at = next_created_at(root, self._existing, now or utc_now())
        self._producer = ManifestProducer(PRODUCER_NAME, _package_version())
        self._outcomes: Counter[Outcome] = Counter()
        self._failures: list[Failure] = []
        self._successes: list[Attempt] = []
        self._waiting: list[Family] = []  # unchanged, and not written as long as nothing else is
        self._changed = self._existing.manifest is None
        self._carried = 0
        self._sources = 0
        self._documents = 0
        self._chunks = 0
        self._listed: list[dict[str, Any]] = []
        self._canonicalizers: set[tuple[str, str]] = set()

    def read(
        self, files: Sequence[SourceFile], failures: Iterable[Failure], on_progress: Callable[[Progress], object]
    ) -> None:
        """Every source and every family that the partition holds already, in the order of their names."""
        for failure in failures:
            self._fail(failure, None)
        self._sources = len(self._failures) + len(files)
        by_key = {key_of_source(file.uri, self._tenant): file for file in files}
        names = {key: (file.uri, self._tenant or "") for key, file in by_key.items()}
        for key, family in self._existing.families.items():
            names[key] = (family.name, family.tenant or "")
        done = 0
        for key in sorted(names, key=lambda key: (names[key], key)):
            family_there = self._existing.families.get(key)
            if key not in by_key:
                self._carry(family_there)
                self._carried += 1
                continue
            outcome = self._read_source(by_key[key], family_there)
            self._outcomes[outcome] += 1
            done += 1
            on_progress(Progress(done, len(files), by_key[key].uri, outcome))

    def _read_source(self, file: SourceFile, family: Family | None) -> Outcome:
        checksum: str | None = None
        try:
            data = read_source(file.path)
            checksum = sha256_hex(data)
            if family is not None and family.version == (checksum, *self._versions()):
                self._carry(family)
                self._note_success(file.uri, checksum, known=True)
                return Outcome.UNCHANGED
            source = SourceVersion(file.uri, checksum, len(data), self._tenant)
            producer = {"name": self._producer.name, "version": self._producer.version, "run_id": self._run_id}
            records = self._chunker.chunks(data, source, created_at=self._created_at, producer=producer)
        except SourceFailed as error:
            self._fail(Failure(file.uri, error.code, error.reason), checksum)
            self._carry(family)
            return Outcome.FAILED
        if not records:
            self._changed = self._changed or family is not None
            self._note_success(file.uri, checksum, known=family is None, error_type=SOURCE_EMPTY)
            return Outcome.EMPTY
        self._changed = True
        self._write_waiting()
        self._write(records, self._versions()[2:], file.uri, checksum)
        self._note_success(file.uri, checksum, known=False)
        return Outcome.PROCESSED

    def _carry(self, family: Family | None) -> None:
        if family is not None:
            self._waiting.append(family)
            if self._changed:
                self._write_waiting()

    def _write_waiting(self) -> None:
        for family in self._waiting:
            records = self._reader.records(family)
            self._write(records, family.version[3:], family.name, family.version[0])
        self._waiting.clear()

    def _write(
        self, records: Iterable[Record], canonicalizer: Sequence[str | None], uri: str, checksum: str | None
    ) -> None:
        for record in records:
            self._writer.add(record)
            self._chunks += 1
        self._documents += 1
        self._canonicalizers.add((canonicalizer[0] or "unknown", canonicalizer[1] or "unknown"))
        if self._documents <= _LISTED_SOURCES:
            self._listed.append({"source_uri": uri, "source_checksum": f"sha256:{checksum}" if checksum else None})

    def _versions(self) -> tuple[str, str, str, str]:
        return (*self._chunker.parser, *self._chunker.canonicalizer)

    def _fail(self, failure: Failure, checksum: str | None) -> None:
        """Recorded at once: a run that is killed later has still tried."""
        self._failures.append(failure)
        self._ledger.append(self._attempt(failure.source_uri, checksum, Status.FAILED, failure.code))

    def _note_success(self, uri: str, checksum: str, *, known: bool, error_type: str | None = None) -> None:
        """Remembered for the ledger, which must not say so before the commit; nothing where it says so already."""
        if known and self._ledger.is_processed(Reading(uri, checksum, *self._versions()), self._key):
            return
        self._successes.append(self._attempt(uri, checksum, Status.PROCESSED, error_type))

    def _attempt(self, uri: str, checksum: str | None, status: Status, error_type: str | None) -> Attempt:
        return Attempt(uri, checksum, *self._versions(), self._created_at, self._run_id, status, error_type, self._key)

    def finish(self) -> IngestReport:
        errors = Counter(failure.code for failure in self._failures)
        if self._outcomes[Outcome.EMPTY]:
            errors[SOURCE_EMPTY] = self._outcomes[Outcome.EMPTY]
        before = self._existing.manifest
        if before is not None and not self._changed:
            self._changed = before.errors != dict(errors) or before.counts.failures != len(self._failures)
        if self._changed:
            self._commit(errors, before)
        self._ledger.append(*self._successes)
        return self._report(before)

    def _commit(self, errors: Counter[str], before: Manifest | None) -> None:
        self._write_waiting()
        links_file(self._root, self._key).unlink(missing_ok=True)  # so that a kill leaves none, not an old one
        sources: list[dict[str, Any]] = self._listed
        if self._documents > len(sources):
            sources = [*sources, {"more": self._documents - len(sources), "see": "the processed-file ledger"}]
        self._writer.commit(
            documents=self._documents,
            producer=self._producer,
            created_at=self._created_at,
            failures=len(self._failures),
            skipped=self._outcomes[Outcome.UNCHANGED],
            errors=dict(sorted(errors.items())),
            tombstones=before.tombstones if before else None,
            chunking_policy_id=self._chunker.canonicalizer[1],
            input_sources=sources,
            canonicalization_versions=[": ".join(pair) for pair in sorted(self._canonicalizers)],
        )

    def _report(self, before: Manifest | None) -> IngestReport:
        documents, chunks = self._documents, self._chunks
        if not self._changed and before is not None:
            documents, chunks = before.counts.documents, before.counts.chunks_emitted
        links = 0
        if self._changed or not links_file(self._root, self._key).exists():
            links = write_links(self._root, self._key)
        return IngestReport(
            partition_key=self._key,
            run_id=self._run_id,
            written=self._changed,
            sources=self._sources,
            processed=self._outcomes[Outcome.PROCESSED],
            unchanged=self._outcomes[Outcome.UNCHANGED],
            empty=self._outcomes[Outcome.EMPTY],
            carried_over=self._carried,
            documents=documents,
            chunks=chunks,
            links=links,
            failures=tuple(self._failures),
        )


def _package_version() -> str:
    try:
        return version("chunksink")
    except PackageNotFoundError:  # run from a checkout that nobody installed
        return "0"
