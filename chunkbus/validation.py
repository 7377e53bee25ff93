"""Checks a bus root against the contract, with flat memory and without any engine.

Never writes below the bus root. Each problem is a `Finding`. A partition with an error is not accepted.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import BinaryIO, TypeVar

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import bare_hex
from chunksink.chunkbus.findings import Finding, Problem, Severity
from chunksink.chunkbus.inventory import Inventory
from chunksink.chunkbus.layout import BusRoot, check_partition_key
from chunksink.chunkbus.manifest import Manifest, decode_manifest, examine_manifest, examine_times
from chunksink.chunkbus.reader import LineBlock, read_blocks
from chunksink.chunkbus.record_checks import CONTRACT, Rules
from chunksink.chunkbus.scan import scan_block, scan_file
from chunksink.chunkbus.shortage import shortage
from chunksink.chunkbus.wording import counted

RULES_VERSION = 7
"""Increase it when the result for the same files may change. All files are then read again."""

_STRAY = "nothing reads this: chunks are canonical/KEY.jsonl, their manifest is manifest/KEY.manifest.json"

Progress = Callable[[int], object]
T = TypeVar("T")


class _ReadFailed(Exception):
    """A chunks file could not be read to its end."""


@dataclass(frozen=True)
class Summary:
    """The result of a validation: partitions and chunks read, findings by severity."""

    partitions: int
    chunks: int
    errors: int
    warnings: int

    @property
    def ok(self) -> bool:
        """Every partition can be accepted."""
        return self.errors == 0

    @property
    def clean(self) -> bool:
        """There is no finding at all."""
        return self.errors == 0 and self.warnings == 0


class Validation:
    """One run over a bus root. Findings go to `on_finding` as they are found, bytes read to `on_progress`."""

    def __init__(
        self,
        root: BusRoot,
        *,
        rules: Rules = CONTRACT,
        workers: Executor | None = None,
        on_finding: Callable[[Finding], object],
        on_progress: Progress = lambda _bytes: None,
    ) -> None:
        self._root = root
        self._rules = rules
        self._workers = workers
        self._on_finding = on_finding
        self._on_progress = on_progress
        self._errors = 0
        self._warnings = 0

    def run(self, keys: Iterable[str] | None = None) -> Summary:
        """Validates the partitions named, else all of the root."""
        self._root.require()
        if keys is None:
            for name in self._root.misnamed_files():
                self._report(name, None, [Problem(findings.PARTITION_KEY, "no partition can have this name")])
            for name in self._root.stray_files():
                self._report(name, None, [Problem(findings.PARTITION_KEY, _STRAY, Severity.WARNING)])
            keys = self._root.partition_keys()
        names = [check_partition_key(key) for key in dict.fromkeys(keys)]
        chunks = 0
        with Inventory() as inventory:
            for key in names:
                chunks += self._validate_partition(key, inventory)
            for split in inventory.split_families(self._root):
                document = f"document {split.document_id!r:.120} of {split.source!r:.120}"
                detail = f"the family of {document} is incomplete or split: {split.reason}"
                self._report(split.partition, split.line, [Problem(findings.FAMILY_SPLIT, detail)])
        return Summary(len(names), chunks, self._errors, self._warnings)

    def _report(self, partition: str, line: int | None, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if problem.severity is Severity.ERROR:
                self._errors += 1
            else:
                self._warnings += 1
            self._on_finding(Finding(problem.code, problem.severity, partition, line, problem.detail))

    def _validate_partition(self, key: str, inventory: Inventory) -> int:
        try:
            file, manifest = self._root.open(key)
        except FileNotFoundError:
            manifest = self._root.manifest_bytes(key)
            if name := self._root.chunks_named(key, manifest):
                self._report(key, None, [Problem(findings.CHUNKS_FILE_MISSING, f"{name} does not exist")])
            self._validate_manifest(key, manifest)
            return 0
        except OSError as error:
            _require_no_shortage(error)
            self._report(key, None, [Problem(findings.UNREADABLE, str(error))])
            return 0
        with file:
            return self._validate_chunks(key, file, manifest, inventory)

    def _validate_manifest(self, key: str, data: bytes | None) -> Manifest | None:
        if data is None:
            problems = [Problem(findings.MANIFEST_MISSING, f"manifest/{key}.manifest.json does not exist")]
        else:
            problems = examine_manifest(key, data)
        self._report(key, None, problems)
        return None if data is None or problems else decode_manifest(data)

    def _validate_chunks(self, key: str, file: BinaryIO, data: bytes | None, inventory: Inventory) -> int:
        manifest = self._validate_manifest(key, data)
        checksum = sha256()

        def watch(data: bytes) -> None:
            checksum.update(data)
            self._on_progress(len(data))

        lines = 0
        is_ahead = False  # whether a time in the future was reported
        inventory.begin(key)
        try:
            blocks = _reading(read_blocks(file, watch))
            for scanned in scan_file(file, blocks, self._rules, self._workers):
                for line, problems in scanned.problems:
                    if problems[0].code == findings.TIME_IN_FUTURE:
                        if is_ahead:
                            continue
                        is_ahead = True
                    self._report(key, lines + line + 1, problems)
                inventory.add(scanned)
                lines += scanned.lines
            for repeated in _reading(inventory.repeated_ids(file)):
                detail = f"chunk_id {repeated.chunk_id!r:.120} is also on line {repeated.earlier_line}"
                self._report(key, repeated.line, [Problem(findings.DUPLICATE_IDS, detail)])
            for old in _reading(inventory.outdated_versions(file)):
                outdated = f"{counted(old.chunks, 'chunk')} of {counted(old.versions, 'version')}"
                detail = f"{outdated}: not indexed, as later chunks of {old.source!r:.120} have another source_checksum"
                self._report(key, old.line, [Problem(findings.SEVERAL_VERSIONS, detail, Severity.WARNING)])
        except _ReadFailed as error:
            self._report(key, lines + 1, [Problem(findings.UNREADABLE, str(error))])
            return lines
        if manifest is not None:
            documents = inventory.fewest_documents()
            name = self._root.chunks_named(key, data)
            self._report(key, None, _compare_with_manifest(manifest, lines, documents, checksum.hexdigest(), name))
            self._report(key, None, [] if is_ahead else examine_times(manifest))
        return lines


class NeedsValidation(Exception):
    """The partition may have a finding; validate all of it."""


class PartialValidation:
    """Validates a rewritten partition whose former content had no findings. Examines only the new lines and the other
    lines of their families. Raises NeedsValidation if the whole partition must be validated. The caller checks for
    repeated ids, because the inventory has only those of the examined lines."""

    def __init__(self, inventory: Inventory, rules: Rules, on_progress: Progress) -> None:
        self._inventory = inventory
        self._rules = rules
        self._on_progress = on_progress
        self._checksum = sha256()
        self.bytes_read = 0

    def watch(self, data: bytes) -> None:
        """Call it with every byte of the file, in order."""
        self._checksum.update(data)
        self.bytes_read += len(data)
        self._on_progress(len(data))

    def examine(self, block: LineBlock) -> LineBlock:
        """Call it with the new lines, then with the other lines of their families."""
        scanned = scan_block(block, self._rules)
        if scanned.problems:
            raise NeedsValidation
        self._inventory.add(scanned)
        return block

    def finish(self, root: BusRoot, file: BinaryIO, manifest: Manifest, chunks: int, documents: int) -> None:
        """Compares the file with its manifest. `documents` is the number of `document_id`s or of sources in the file,
        whichever is smaller."""
        mismatches = _compare_with_manifest(manifest, chunks, documents, self._checksum.hexdigest())
        mismatches += examine_times(manifest)
        inventory = self._inventory
        if any(True for _ in chain(mismatches, inventory.outdated_versions(file), inventory.split_families(root))):
            raise NeedsValidation


def _reading(items: Iterator[T]) -> Iterator[T]:
    """Passes the items on. An OSError of their file becomes _ReadFailed, unless this machine is short of something."""
    try:
        yield from items
    except OSError as error:
        _require_no_shortage(error)
        raise _ReadFailed(str(error)) from error


def _require_no_shortage(error: OSError) -> None:
    """Raises the error again if this machine caused it (a full disk, too many open files), not the file."""
    if shortage(error) is not None:
        raise error


def _compare_with_manifest(
    manifest: Manifest, chunks: int, documents: int, checksum: str, name: str | None = None
) -> list[Problem]:
    """The differences between a manifest and its chunks. `name` is the chunks file in messages."""
    problems = []
    counts, skipped = manifest.counts, manifest.idempotency.skipped
    if counts.chunks_emitted != chunks:
        detail = f"the manifest counts {counts.chunks_emitted} chunks, the file has {chunks}"
        problems.append(Problem(findings.MANIFEST_MISMATCH, detail))
    # The manifest may count more documents than the file has, because some have no chunk.
    if documents > counts.documents + skipped:
        detail = f"the manifest counts {counts.documents} documents and {skipped} skipped, the file has {documents}"
        problems.append(Problem(findings.MANIFEST_MISMATCH, detail, Severity.WARNING))
    expected = bare_hex(manifest.checksums.chunks_file)
    if expected != checksum:
        hashes = f"its sha256 is {checksum}, the manifest has {expected}"
        detail = f"{name or 'the chunks file'} is damaged or was changed after its commit: {hashes}"
        problems.append(Problem(findings.CHECKSUM_MISMATCH, detail))
    return problems
