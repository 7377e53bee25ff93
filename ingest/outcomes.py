"""Records the outcome of each source for the next run, the ledger, manifests and the report."""

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import orjson

from chunksink.chunkbus.findings import DUPLICATE_IDS
from chunksink.chunkbus.identity import family_key, resolve_parent_id
from chunksink.ingest.classify import UNKNOWN
from chunksink.ingest.codes import RECORD_SUPERSEDED, SCAN_WITHOUT_TEXT, SOURCE_EMPTY, SOURCE_IN_ANOTHER_FILE
from chunksink.ingest.discover import Discovery, is_missing
from chunksink.ingest.formats.registry import Format
from chunksink.ingest.model import FamilySummary, Notice
from chunksink.ingest.read import REFUSED, Reading, Stamp, rows_of
from chunksink.ingest.reconcile import NOT_IN_FILE, VANISHED, Missing
from chunksink.ingest.report import Failure, IngestReport, Outcome, folder_of
from chunksink.ingest.roots import Roots
from chunksink.ingest.store import set_found, signature_columns
from chunksink.ingest.write import Notices, Written

_NAMED_SOURCES = 20
"""How many sources and folders the report names at most for each code."""
_DIGEST = FamilySummary._fields.index("digest")


class Outcomes:
    """Collects the results of each stage, in the order of the stages."""

    def __init__(self, db: sqlite3.Connection, stamp: Stamp, run_id: str, formats: Mapping[str, Format]) -> None:
        self._db, self._stamp, self._run_id, self._formats = db, stamp, run_id, formats
        self._tenant = stamp.tenant or ""
        self._failures: list[Failure] = []
        self._unreported = 0  # failures that are counted, but not in `_failures`
        self._equal = 0  # files that were read, but whose families are unchanged

    def add_discovered(
        self, discovery: Discovery, unknown: Sequence[Failure], forgets: Callable[[str, int], bool]
    ) -> None:
        """Records what `discover` could not read or left out. `forgets` gets the name of a source that was not found,
        and its number of families; it decides whether the earlier reading is forgotten."""
        self._failures += (*discovery.failures, *unknown)
        for failures, outcome in ((discovery.failures, Outcome.FAILED), (discovery.left_out, Outcome.LEFT_OUT)):
            for uri, code in ((failure.source_uri, failure.code) for failure in failures):
                codes = orjson.dumps({code: 1}).decode()
                self._db.execute(_ADD_UNREAD, (uri, b"", outcome, codes, outcome is Outcome.FAILED, code))
        self._db.create_function("forgets", 2, forgets)
        self._db.execute(_FORGET_VANISHED, [self._tenant])

    def add_reading(self, reading: Reading) -> None:
        """Stores a reading in `found`, `draft` and `empty`."""
        read = {"checksum": reading.checksum, **signature_columns(reading.signature)}
        if reading.is_unchanged:
            set_found(self._db, reading.uri, outcome=Outcome.UNCHANGED, **read)
            return
        spool = os.fsencode(f"{reading.spool}.chunks")
        for place, (line, *row) in enumerate(rows_of(reading)):
            earlier = self._db.execute(_REMOVE_DRAFT, (row[0], reading.uri)).fetchone()
            if row[1:] == [REFUSED]:  # the family keeps its former chunks
                self._db.execute("delete from empty where family = ? and uri = ?", (row[0], reading.uri))
                continue
            if len(row) == 1:
                self._db.execute("insert or ignore into empty values (?, ?)", (row[0], reading.uri))
            else:
                self._db.execute(_DRAFT, (*row, spool, reading.uri, place))
            if earlier:
                name, digest = earlier
                reading.add(_superseded(name, line, is_equal=len(row) > 1 and row[_DIGEST] == digest))
        outcome, error = Outcome.PROCESSED, reading.reported[0].code if reading.reported else None
        if not reading.families:
            outcome = Outcome.FAILED if reading.failures else Outcome.EMPTY
            error = error or (SCAN_WITHOUT_TEXT if SCAN_WITHOUT_TEXT in reading.codes else SOURCE_EMPTY)
        codes = orjson.dumps(reading.codes, option=orjson.OPT_SORT_KEYS).decode()
        read |= {"outcome": outcome, "error": error, "failures": reading.failures}
        set_found(self._db, reading.uri, is_whole=reading.is_whole, codes=codes, **read)
        self._failures += reading.reported
        self._unreported += reading.failures - len(reading.reported)

    def assign_partitions(self) -> None:
        """Chooses for each file the partition whose manifest will contain the file's notices."""
        (self._equal,) = self._db.execute(_EQUAL).fetchone()
        self._db.execute(_ASSIGN_KNOWN_PARTITIONS, {"tenant": self._tenant})
        unplaced = self._db.execute("select uri, format, mtime_ns from found where partition is null").fetchall()
        for uri, name, mtime_ns in unplaced:
            source_type = self._formats[name].source_type if name != UNKNOWN else "other"
            family = family_key(resolve_parent_id(None, uri, ""), self._stamp.tenant)
            partition = self._stamp.placement.key_of(family, source_type, mtime_ns)
            set_found(self._db, uri, partition=partition)

    def notices(self) -> dict[str, Notices]:
        """The notices of each partition's sources. A source that this run did not read keeps its last notices."""
        errors: dict[str, Counter[str]] = {}
        failures, skipped = Counter[str](), Counter[str]()
        for partition, outcome, codes, failed in self._db.execute(_NOTICES, {"tenant": self._tenant}):
            errors.setdefault(partition, Counter()).update(orjson.loads(codes))
            failures[partition] += failed
            skipped[partition] += outcome == Outcome.UNCHANGED
        return {key: Notices(errors[key], failures[key], skipped[key]) for key in errors}

    def save(self, written: Written) -> None:
        """Saves the readings and their families for the next run, once the partitions contain them."""
        self._failures += written.refused
        for failure in written.refused:
            self._db.execute(_COUNT_REFUSAL, {"code": failure.code, "uri": failure.source_uri})
        values = {"tenant": self._tenant}
        for statement in (_FORGET_FAMILIES, _MARK_FORMER, _NEW_FAMILIES):
            self._db.execute(statement, values)
        about = {"processed_at": self._stamp.created_at, "run_id": self._run_id, "tenant": self._tenant}
        self._db.execute(_ATTEMPTS, about)
        self._db.execute(_SOURCES, values | {"placement": self._stamp.placement.name})

    def report(
        self, discovery: Discovery, missing: Missing, written: Written, links: int, roots: Roots
    ) -> IngestReport:
        outcomes = Counter(dict(self._db.execute("select outcome, count(*) from found group by outcome")))
        placement = self._stamp.placement
        values = {"only": placement.only, "tenant": self._tenant, "vanished": VANISHED, "not_in_file": NOT_IN_FILE}
        documents, chunks, own, pruned = self._db.execute(_COUNTS, values).fetchone()
        left_out, left_out_from, left_out_folders = self._left_out()
        return IngestReport(
            partition_key=placement.name,
            run_id=self._run_id,
            written=bool(written.partitions),
            partitions=tuple(sorted(written.partitions)),
            sources=outcomes.total() - outcomes[Outcome.LEFT_OUT],
            processed=outcomes[Outcome.PROCESSED] - self._equal,
            unchanged=outcomes[Outcome.UNCHANGED] + self._equal,
            empty=outcomes[Outcome.EMPTY],
            carried_over=documents - own,
            pruned=pruned,
            documents=documents,
            chunks=int(chunks),
            links=links,
            left_out=left_out,
            left_out_from=left_out_from,
            left_out_folders=left_out_folders,
            failed=len(self._failures) + self._unreported,
            failures=tuple(self._failures),
            kinds=dict(self._db.execute(_KINDS)),
            other_kinds=dict(sorted(discovery.other_kinds.items(), key=lambda counted: (-counted[1], counted[0]))),
            missing=missing.families,
            missing_from=missing.names,
            gone=self._missing_folders(roots),
            unmatched=discovery.unmatched,
            elsewhere=tuple(partition for (partition,) in self._db.execute(_ELSEWHERE, values)),
        )

    def _left_out(self) -> tuple[dict[str, int], dict[str, tuple[str, ...]], dict[str, dict[str, int]]]:
        codes, named, folders = Counter[str](), dict[str, tuple[str, ...]](), dict[str, Counter[str]]()
        for uri, counts in self._db.execute("select uri, codes from found where codes <> '{}' order by uri"):
            of_source = orjson.loads(counts)
            codes.update(of_source)
            for code, number in of_source.items():
                named[code] = (*named.get(code, ()), uri)[:_NAMED_SOURCES]
                folders.setdefault(code, Counter())[folder_of(uri)] += number
        most = {code: dict(numbers.most_common(_NAMED_SOURCES)) for code, numbers in folders.items()}
        return dict(sorted(codes.items())), named, most

    def _missing_folders(self, roots: Roots) -> dict[str, int]:
        """Registered folders that no longer exist, and the number of their sources that keep their chunks."""
        folders: dict[str, int] = {}
        for root in roots:
            if is_missing(root.path):
                scope = roots.within(root.path)
                number = sum(scope.contains(origin) for (origin,) in self._db.execute("select origin from family"))
                folders |= {str(root.path): number} if number else {}
        return folders


def _superseded(name: str, line: int | None, *, is_equal: bool) -> Notice:
    """A notice that the family at this line of its file replaces an earlier one; a failure unless both are equal."""
    if is_equal:
        return Notice(RECORD_SUPERSEDED, f"{name} is in the file twice", line, is_failure=False)
    reason = f"{name} replaces an earlier one with the same name but different content: each needs its own name"
    return Notice(DUPLICATE_IDS, reason, line)


# Adds every source that was read or failed to the ledger. Files and folders that were left out are added only if they
# are new or their codes have changed, not in every run.
_ATTEMPTS = """
insert into attempts (source_uri, source_checksum, parser_name, parser_version, canonicalizer_name,
  canonicalizer_version, processed_at, run_id, status, error_type, partition_key, left_out, tenant)
select uri, checksum, json_extract(versions, '$[0]'), json_extract(versions, '$[1]'), json_extract(versions, '$[2]'),
  json_extract(versions, '$[3]'), :processed_at, :run_id,
  iif(failures > 0, 'failed', 'processed'), error, partition, nullif(codes, '{}'), nullif(:tenant, '')
from found
where outcome in ('processed', 'empty', 'failed') or failures > 0 or (outcome = 'left_out' and not exists (
  select 1 from source where source.uri = found.uri and source.tenant = :tenant and source.codes = found.codes
))
order by uri
"""
_FORGET_VANISHED = (
    "delete from source where tenant = ? and uri not in (select uri from found) and forgets(uri, families)"
)
_ADD_UNREAD = "insert or ignore into found (uri, path, outcome, codes, failures, error) values (?, ?, ?, ?, ?, ?)"
_KINDS = "select format, count(*) from found where format <> '' group by format order by format"
_REMOVE_DRAFT = "delete from draft where family = ? and uri = ? returning name, digest"
_DRAFT = f"""
insert into draft (family, name, tenant, document, version, newest, chunks, digest, made_by, partition,
  is_partial, start, end, spool, uri, place) values ({", ".join("?" * 16)})
"""
_EQUAL = f"""
select count(*) from found where outcome = 'processed' and codes not like '%{SOURCE_IN_ANOTHER_FILE}%'
  and uri not in (select uri from arrival where uri is not null)
"""
_ASSIGN_KNOWN_PARTITIONS = """
update found set partition = coalesce(
  (select draft.partition from draft where draft.uri = found.uri order by place limit 1),
  (select source.partition from source where source.uri = found.uri and source.tenant = :tenant)
)
"""
_NOTICES = """
select partition, outcome, codes, failures from found where codes not like '%FOLDER_IS_OUTPUT%'
union all
select partition, '', codes, failures from source
where (tenant <> :tenant or uri not in (select uri from found)) and codes not like '%FOLDER_IS_OUTPUT%'
"""
_COUNT_REFUSAL = """
update found set failures = failures + 1, error = coalesce(error, :code),
  codes = json_set(codes, '$."' || :code || '"', coalesce(json_extract(codes, '$."' || :code || '"'), 0) + 1)
where uri = :uri
"""

# A family that its file no longer contains keeps its row until `--prune` removes it from its partition.
_FORGET_FAMILIES = """
delete from source_family
where tenant = :tenant and not exists (select 1 from family where family.family = source_family.family)
"""
_MARK_FORMER = """
update source_family set is_current = 0 where tenant = :tenant and exists (
  select 1 from found where found.uri = source_family.uri and found.is_whole and found.outcome <> 'unchanged'
)
"""
_NEW_FAMILIES = "insert or replace into source_family select family, uri, :tenant, 1 from draft"
_SOURCES = """
insert or replace into source
select found.uri, :tenant, found.format, coalesce(found.versions, ''), :placement,
  found.checksum, found.size, found.mtime_ns, found.ctime_ns, found.inode, found.partition,
  (
    select count(*) from source_family
    where source_family.uri = found.uri and source_family.tenant = :tenant and is_current
  ),
  found.codes, found.failures
from found where found.outcome is not null
"""
_ELSEWHERE = """
select distinct partition from family
where partition <> :only and tenant = :tenant and origin in (select uri from found where outcome <> 'left_out')
order by partition
"""
_COUNTS = """
select count(*), total(chunks),
  (
    select count(distinct family.family)
    from family join source_family using (family) join found on found.uri = source_family.uri
    where source_family.is_current and (:only is null or family.partition = :only)
  ),
  (select count(*) from departure where reason in (:vanished, :not_in_file))
from family where :only is null or partition = :only
"""
