"""Reads the bus into the catalog. A new or changed partition is validated, then accepted or rejected as a whole.

A missing or invalid partition keeps the chunks of its last valid reading; its families are held.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, TypeVar

from chunksink.chunkbus.canonical import sha256_hex
from chunksink.chunkbus.errors import PartitionChanged
from chunksink.chunkbus.findings import FIELD_VALUE, PARTITION_KEY, UNREADABLE, Finding, Severity
from chunksink.chunkbus.inventory import Inventory
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import decode_manifest, examine_manifest
from chunksink.chunkbus.record_checks import Rules
from chunksink.chunkbus.store import write_transaction
from chunksink.chunkbus.validation import RULES_VERSION, NeedsValidation, PartialValidation, Progress, Validation
from chunksink.rebuild.catalog_rows import instant, mark_undecided, update_chunks
from chunksink.rebuild.errors import OtherBus
from chunksink.rebuild.family_versions import decide
from chunksink.rebuild.schema import exists
from chunksink.rebuild.state import State
from chunksink.sinks.custom_fields import NO_FIELDS, FieldSet
from chunksink.sinks.projection import projection_id

VALID, INVALID, MISSING = "valid", "invalid", "missing"
_ATTEMPTS = 5
T = TypeVar("T")

OnFinding = Callable[[Finding], object]
Workers = Callable[[int], AbstractContextManager[Executor | None]]
"""Opens helper processes for validating this many bytes; None if not worthwhile."""


def ignore(_anything: object) -> None:
    return None


def retry_if_rewritten(attempt: Callable[[], T]) -> T:
    """Repeat the attempt if a partition was rewritten meanwhile. Raises PartitionChanged after several attempts."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(PartitionChanged):
            return attempt()
    return attempt()


@dataclass(eq=False)
class Intake:
    """Updates the catalog of one home from one bus root."""

    root: BusRoot
    state: State
    require_source_checksum: bool = False
    fields: FieldSet = NO_FIELDS
    workers: Workers = lambda _size: nullcontext()
    on_finding: OnFinding = ignore
    _warnings: dict[str, list[Finding]] = field(default_factory=dict, init=False)

    def warnings(self, limit: int) -> tuple[Finding, ...]:
        """For each partition that this run read and accepted, the first warning of each code. Warnings about values of
        custom fields are left out."""
        return tuple(islice(chain.from_iterable(self._warnings.values()), limit))

    def pending(self, *, reread: bool = False) -> list[str]:
        """Partitions that must be read; with `reread` all that exist."""
        recorded = {
            key: signature
            for key, signature, state in self.state.db.execute("select key, signature, state from partition")
            if state != MISSING
        }
        keys = self.root.partition_keys()
        return [key for key in keys if reread or recorded.get(key) != self._with_rules(self.root.signature(key))]

    def disappeared(self) -> list[str]:
        """Partitions that have disappeared since the catalog was last refreshed."""
        recorded = self.state.db.execute("select key from partition where state <> ? order by key", [MISSING])
        existing = set(self.root.partition_keys())
        return [key for (key,) in recorded if key not in existing]

    def pending_bytes(self, *, reread: bool = False) -> int:
        return sum(self.root.size_of(key) for key in self.pending(reread=reread))

    def require_known_bus(self) -> None:
        """Raises OtherBus if the bus has partitions, but none of those that the index was made from."""
        known = {key for (key,) in self.state.db.execute("select key from partition")}
        keys = self.root.partition_keys()
        if keys and known and known.isdisjoint(keys) and exists(self.state.db, "chunk"):
            raise OtherBus(
                f"{self.root.place} has none of the {len(known):,} partitions of this index (such as {min(known)}), "
                "only others; nothing was read. Name the right chunks with --chunks, or another index with --home. If "
                "the partitions were really replaced, run `chunksink retire-partition KEY` for the old ones first"
            )

    def refresh(self, on_bytes: Progress = ignore, *, reread: bool = False, any_bus: bool = False) -> None:
        """Read new and changed partitions into the catalog, or with `reread` all, then decide which versions count.
        Raises OtherBus, except with `any_bus`, if all partitions of the index were replaced."""
        if not any_bus:
            self.require_known_bus()
        self._forget_other_projection()
        self.read(on_bytes, reread=reread)
        decide(self.state.db)

    def read(self, on_bytes: Progress = ignore, *, reread: bool = False) -> None:
        """Read new and changed partitions, or with `reread` all; report and record their findings."""
        self._note_misnamed()
        self._note_missing()
        pending = self.pending(reread=reread)
        keys = [key for key in pending if reread or not self._accept_changes(key, on_bytes)]
        with self.workers(sum(map(self.root.size_of, keys))) as workers:
            for key in keys:
                self._read(key, on_bytes, workers)

    def _forget_other_projection(self) -> None:
        """Delete the family hashes if they were computed with another projection."""
        db, projection = self.state.db, projection_id(self.fields)
        if db.execute("select version from projection").fetchone() == (projection,):
            return
        with write_transaction(db):
            db.execute("delete from projection")
            db.execute("insert into projection values (?)", [projection])
            db.execute("update current set family_hash = null")

    def _note_misnamed(self) -> None:
        """Note a finding for each file whose name is not a valid partition key. Such files are not partitions, so no
        family is held because of them."""
        detail = "no partition can have this name"
        findings = [Finding(PARTITION_KEY, Severity.ERROR, name, None, detail) for name in self.root.misnamed_files()]
        with write_transaction(self.state.db):
            self.state.db.execute("delete from finding where code = ?", [PARTITION_KEY])
            self._insert_findings(findings)
        for finding in findings:
            self.on_finding(finding)

    def _note_missing(self) -> None:
        for key in self.disappeared():
            with write_transaction(self.state.db):
                # A partition that was never valid has no families to hold.
                self.state.db.execute("delete from partition where key = ? and checksum is null", [key])
                self.state.db.execute("delete from finding where partition = ?", [key])
                self._set_state(key, MISSING, None)

    def _accept_changes(self, key: str, on_bytes: Progress) -> bool:
        """Accept a partition that had no findings, validating only its families with changed lines. Returns False and
        changes nothing if the whole partition must be validated."""
        if not self._had_no_finding(key):
            return False
        signature, is_settled = self._settled_signature(key)
        with Inventory() as inventory:
            inventory.begin(key)
            part = PartialValidation(inventory, self._rules, on_bytes)
            try:
                with write_transaction(self.state.db):
                    self._accept(key, signature if is_settled else None, part)
                    self._require_same(key, signature)
            except (NeedsValidation, PartitionChanged, OSError):
                on_bytes(-part.bytes_read)
                return False
        return True

    def _had_no_finding(self, key: str) -> bool:
        """Whether the partition was valid without findings under the same rules. If its column `manifest` is null, the
        rows of its chunks may be wrong."""
        select = "select signature from partition where key = ? and state = ? and manifest is not null"
        signature, *_ = self.state.db.execute(select, [key, VALID]).fetchone() or [None]
        same_rules = signature is not None and signature.startswith(self._with_rules(""))
        return same_rules and not exists(self.state.db, "finding where partition = ?", [key])

    def _read(self, key: str, on_bytes: Progress, workers: Executor | None) -> None:
        findings = retry_if_rewritten(lambda: self._validate(key, on_bytes, workers))
        for finding in findings:
            self.on_finding(finding)
        first = {each.code: each for each in reversed(findings) if each.code != FIELD_VALUE}
        self._warnings[key] = [] if any(each.is_error for each in findings) else list(first.values())

    def _validate(self, key: str, on_bytes: Progress, workers: Executor | None) -> list[Finding]:
        signature, is_settled = self._settled_signature(key)
        findings: list[Finding] = []
        Validation(self.root, rules=self._rules, workers=workers, on_finding=findings.append, on_progress=on_bytes).run(
            [key]
        )
        is_read = all(finding.code != UNREADABLE for finding in findings)
        recorded = signature if is_settled and is_read else None
        with write_transaction(self.state.db):
            if any(finding.is_error for finding in findings):
                self._reject(key, recorded)
            else:
                self._accept(key, recorded)
            self.state.db.execute("delete from finding where partition = ?", [key])
            self._insert_findings(findings)
            self._require_same(key, signature)
        return findings

    @property
    def _rules(self) -> Rules:
        return self.fields.rules(require_source_checksum=self.require_source_checksum)

    def _settled_signature(self, key: str) -> tuple[str, bool]:
        """The signature, and whether every later change of the files will change it. If not, it must not be recorded,
        so that the partition is read again the next time."""
        files, is_settled = self.root.settled_signature(key)
        return self._with_rules(files), is_settled

    def _with_rules(self, files: str) -> str:
        """The signature of a partition: the rules of validation, and `files`, the signature of its files."""
        checksums = "source_checksum " if self.require_source_checksum else ""
        fields = f"fields {self.fields.digest} " if self.fields.fields else ""
        return f"rules {RULES_VERSION} {checksums}{fields}{files}"

    def _require_same(self, key: str, signature: str) -> None:
        if self._settled_signature(key)[0] != signature:
            raise PartitionChanged(f"partition {key} was rewritten while it was read; run again")

    def _reject(self, key: str, signature: str | None) -> None:
        """Record the partition as invalid. Its families stay in the index unchanged."""
        self.state.db.execute("insert or ignore into partition (key, state) values (?, ?)", [key, INVALID])
        self._set_state(key, INVALID, signature)

    def _accept(self, key: str, signature: str | None, part: PartialValidation | None = None) -> None:
        """Update the rows of the partition. With `part`, also validate the families with changed lines. Raises
        NeedsValidation if the whole partition must be validated."""
        file, data = self.root.open(key)
        with file:
            if data is None:
                raise PartitionChanged(f"partition {key} no longer has a manifest")
            digest = sha256_hex(data)
            if part and examine_manifest(key, data):
                raise NeedsValidation
            select = "select manifest, created_at from partition where key = ?"
            former_digest, former_date = self.state.db.execute(select, [key]).fetchone() or (None, None)
            if former_digest == digest:  # the manifest names the same chunks
                if part:  # the signature has changed nevertheless, so the file may be damaged
                    raise NeedsValidation
                self._set_state(key, VALID, signature)
                return
            manifest = decode_manifest(data)
            created_at = instant(manifest.created_at)
            mark_withdrawn_undecided(self.state.db, key)
            drop_partition(self.state.db, key)
            self.state.db.execute(
                "insert into partition (key, signature, state, manifest, checksum, created_at) "
                "values (?, ?, ?, ?, ?, ?)",
                [key, signature, VALID, digest, manifest.checksums.chunks_file, created_at],
            )
            self.state.db.conn.executemany(
                "insert into tombstone (partition, parent_id, document_id, tenant_id, at) values (?, ?, ?, ?, ?)",
                [
                    (key, each.parent_id, each.document_id, each.tenant_id, instant(each.at) if each.at else created_at)
                    for each in manifest.tombstones
                ],
            )
            update_chunks(self.state.db, key, file, part, trust_rows=former_digest is not None)
            if part:
                counts = "count(*), count(distinct document_id), count(distinct parent_id)"
                chunks, *documents = self.state.db.execute(
                    f"select {counts} from chunk where partition = ?", [key]
                ).fetchone()
                part.finish(self.root, file, manifest, chunks, min(documents))
            mark_withdrawn_undecided(self.state.db, key)
            if former_date != created_at:  # chunks without a date get this one
                undated = "select family, partition from chunk where partition = ? and created_at is null"
                self.state.db.execute(f"insert or ignore into undecided {undated}", [key])

    def _set_state(self, key: str, state: str, signature: str | None) -> None:
        """If the state changes, the partition's families are marked as undecided."""
        is_change = exists(self.state.db, "partition where key = ? and state <> ?", [key, state])
        self.state.db.execute("update partition set state = ?, signature = ? where key = ?", [state, signature, key])
        if is_change:
            mark_undecided(self.state.db, key)
            mark_withdrawn_undecided(self.state.db, key)

    def _insert_findings(self, findings: list[Finding]) -> None:
        self.state.db.conn.executemany(
            "insert into finding (partition, code, severity, line, detail) values (?, ?, ?, ?, ?)",
            [(each.partition, each.code, each.severity.value, each.line, each.detail) for each in findings],
        )


def mark_withdrawn_undecided(db: Any, key: str) -> None:
    """Marks as undecided the families that tombstones of this partition withdraw."""
    for condition in ("c.parent_id = t.parent_id", "c.family = t.parent_id", "c.document_id = t.document_id"):
        select = f"select c.family, '' from tombstone t join chunk c on {condition} where t.partition = ?"
        db.execute(f"insert or ignore into undecided {select}", [key])


def drop_partition(db: Any, key: str) -> None:
    """Deletes all rows of the partition except its chunks."""
    for table, column in (("partition", "key"), ("tombstone", "partition"), ("finding", "partition")):
        db.execute(f"delete from {table} where {column} = ?", [key])
