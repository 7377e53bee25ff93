"""Stage 2: determines the format of each file, and whether it has changed since it was last read."""

import os
import sqlite3
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from chunksink.chunkbus.signature import Signature
from chunksink.ingest.codes import RECORD_FORM_UNKNOWN, SOURCE_EMPTY
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.registry import Format, Match, taken_suffixes
from chunksink.ingest.json_records import find_records, first_problem, first_records, has_no_records
from chunksink.ingest.model import Notice
from chunksink.ingest.options import AUTO, ROWS, Options
from chunksink.ingest.placement import Rule
from chunksink.ingest.read import checksum_of_file
from chunksink.ingest.report import Failure, Outcome
from chunksink.ingest.roots import Roots
from chunksink.ingest.store import pages, set_found, signature_columns

UNKNOWN = ""
"""The format of a file whose content no format recognises."""
_TEXT = "text"
_JSON = ".json"
_SEPARATED = (".csv", ".tsv")


def suffixes_of(options: Options, formats: Mapping[str, Format]) -> tuple[str, ...]:
    """The suffixes of files that are found in folders."""
    if options.format == AUTO and not options.fields:
        return tuple(suffix for one in formats.values() for suffix in one.suffixes)
    one = formats[ROWS if options.fields else options.format]
    return one.suffixes + one.suffixes_if_asked


def classify(
    db: sqlite3.Connection,
    options: Options,
    formats: Mapping[str, Format],
    roots: Roots,
    named: Collection[bytes],
    only: str | None,
) -> list[Failure]:
    """Sets format and signature of each file in `found`, and the outcome of those that need not be read.

    A file is unchanged under three conditions. Its last reading had no failure. Its signature, placement, format and
    versions of the format are the same. All its families are still in the partition `only` (None: in any). If only the
    signature differs, the checksum decides. With `by-date` a file whose signature differs is always read, because its
    time decides the partition.

    Files that no format recognises are left out and counted. Returns those that are failures: a named file, a CSV
    file, which is found only if it was asked for, and a file with chunks that has changed or whose last reading had
    failures. The last reading of a file with chunks stays recorded, so that it is a failure until a run reads it.
    """
    failures = []
    started_ns = time.time_ns()
    versions_by = cache(lambda name, policy: versions_of(formats[name].with_policy(policy)))
    finds_format = options.format == AUTO and not options.fields
    taken = taken_suffixes(formats) if finds_format else {}
    values = {"tenant": options.tenant or "", "only": only}
    for page in pages(db, _WITH_LAST_READING, values):
        recognised: list[tuple[Any, ...]] = []
        for row in page:
            found = _Found(*row)
            signature = _signature(found.path)
            columns = signature_columns(signature)
            is_same = not options.checksum and signature is not None and (*columns.values(),) == found.last_signature
            last_format = found.last_format
            needs_fields = finds_format and last_format == ROWS and "=" in (found.last_versions or "")
            if last_format not in formats or needs_fields:  # not installed, or without its --field options
                last_format = UNKNOWN if found.families else None  # perhaps another format recognises the file
            name = (last_format or None) if is_same and finds_format else None
            if taken:
                name = taken.get(found.file.suffix.lower(), name)
            if name is None:
                name = _format_of(found.file, options, formats, last_format)
            if name == UNKNOWN and found.is_included and not found.families and _is_json_value(found.file):
                name = _TEXT
            if name == UNKNOWN:
                failure = _leave_out(
                    db, found, signature, is_same=is_same, is_named=found.path in named, started_ns=started_ns
                )
                failures += [failure] if failure else []
                continue
            versions = versions_by(name, roots.policy_of(found.uri))
            now, codes, checksum = (name, versions, options.partition, 0), found.codes, found.checksum
            if (last_format, found.last_versions, found.placement, found.last_failures) != now:
                codes, checksum, is_same = "{}", None, False
            if not is_same and options.partition == Rule.BY_DATE:
                checksum = None  # its time determines the partition
            outcome = Outcome.UNCHANGED if is_same else None
            recognised.append((name, versions, outcome, checksum, codes, *columns.values(), found.uri))
        db.executemany(_RECOGNISED, recognised)
    db.execute(_READ_WHERE_FAMILIES_ARE_MISSING, values)
    return failures


@dataclass(frozen=True)
class _Found:
    """A file, and what the store records of its last reading."""

    uri: str
    path: bytes
    codes: str | None
    checksum: str | None
    last_format: str | None
    last_versions: str | None
    families: int | None
    placement: str | None
    last_failures: int | None
    last_size: int | None
    last_mtime_ns: int | None
    last_ctime_ns: int | None
    last_inode: int | None
    is_included: int

    @property
    def last_signature(self) -> tuple[int | None, ...]:
        return self.last_size, self.last_mtime_ns, self.last_ctime_ns, self.last_inode

    @property
    def file(self) -> Path:
        return Path(os.fsdecode(self.path))


_WITH_LAST_READING = """
select found.uri, found.path, source.codes, iif(source.failures > 0 and source.format <> '', null, source.checksum),
  source.format, source.versions, source.families, source.placement, source.failures,
  source.size, source.mtime_ns, source.ctime_ns, source.inode, found.is_included
from found left join source on source.uri = found.uri and source.tenant = :tenant
where found.uri > :after order by found.uri limit 1000
"""
_RECOGNISED = """
update found set format = ?, versions = ?, outcome = ?, checksum = ?, codes = ?,
  size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?
where uri = ?
"""
_READ_WHERE_FAMILIES_ARE_MISSING = """
update found set outcome = null, checksum = null
where format <> '' and checksum is not null and (
  select families from source where source.uri = found.uri and source.tenant = :tenant
) <> (
  select count(*) from source_family
  where source_family.uri = found.uri and source_family.tenant = :tenant and is_current and exists (
    select 1 from family where family.family = source_family.family and family.origin >= found.uri
      and (:only is null or family.partition = :only)
  )
)
"""


def versions_of(one: Format) -> str | None:
    """The format's versions as JSON; None if its library is not installed."""
    try:
        return orjson.dumps([*one.parser, *one.canonicalizer]).decode()
    except SourceFailed:
        return None


def _leave_out(
    db: sqlite3.Connection,
    found: _Found,
    signature: Signature | None,
    *,
    is_same: bool,
    is_named: bool,
    started_ns: int,
) -> Failure | None:
    """Record that no format recognises a file. Returns the failure, if it is one."""
    was_unknown = is_same and found.last_format == UNKNOWN
    is_empty = SOURCE_EMPTY in (found.codes or "") if was_unknown else has_no_records(found.file)
    code = SOURCE_EMPTY if is_empty else RECORD_FORM_UNKNOWN
    reading = {"format": UNKNOWN, "outcome": Outcome.LEFT_OUT, "is_whole": is_empty, **signature_columns(signature)}
    problem: Notice | None = None
    if found.families and not is_empty:
        reading |= {"versions": found.last_versions or None, "checksum": found.checksum}
        is_same = is_same or _has_content(found.path, found.checksum)
        if not is_same:
            reading |= dict(zip(signature_columns(None), found.last_signature, strict=True))
        elif signature is not None and not signature.is_settled(started_ns):
            reading |= signature_columns(None)
        if found.checksum is None:
            problem = _cannot_read(found, "its last reading had failures")
        elif not is_same:
            problem = _cannot_read(found, "it has changed, so its chunks may be old")
        elif is_named:
            problem = _cannot_read(found, "this run cannot read it")
    elif not is_empty and (is_named or found.file.suffix.lower() in _SEPARATED):
        problem = _problem(found.file)
    code = problem.code if problem else code
    counts = orjson.dumps({code: 1}).decode()
    set_found(db, found.uri, codes=counts, error=code, failures=problem is not None, **reading)
    return Failure(found.uri, code, problem.reason, problem.line) if problem else None


def _signature(path: bytes) -> Signature | None:
    with suppress(OSError):  # reading it reports the error
        return Signature.of(os.stat(path))  # noqa: PTH116 (many files)
    return None


def _has_content(path: bytes, checksum: str | None) -> bool:
    with suppress(OSError, SourceFailed):
        return checksum is not None and checksum_of_file(os.fsdecode(path))[0] == checksum
    return False


def _cannot_read(found: _Found, why: str) -> Notice:
    """A failure of a file with chunks, and the remedy."""
    from chunksink.ingest.formats.rows import field_options

    if not found.last_versions:
        return _problem(found.file)
    parser, version, _, rules = orjson.loads(found.last_versions)
    fields = field_options(rules)
    remedy = f"ingest it alone with {fields}" if fields else f"install the package of {parser} {version} again"
    return Notice(RECORD_FORM_UNKNOWN, f"{why}: {remedy}")


def _problem(file: Path) -> Notice:
    """Why no format recognises a file, and the remedy."""
    from chunksink.ingest.formats.markdown.normalise import shortened
    from chunksink.ingest.formats.rows.separated_values import read_header

    if file.suffix.lower() in _SEPARATED:
        with suppress(OSError, SourceFailed):
            columns = shortened(", ".join(dict.fromkeys(read_header(file))))
            reason = f"its header names no text with an id, a title or an address; its columns are {columns}"
            return Notice(RECORD_FORM_UNKNOWN, f"{reason}. Ingest this file alone with --field text=COLUMN")
    elif problem := first_problem(file):
        return problem
    reason = "no format recognises its records; ingest this file alone with --field text=NAME or --as FORMAT"
    return Notice(RECORD_FORM_UNKNOWN, reason)


def _format_of(file: Path, options: Options, formats: Mapping[str, Format], last: str | None) -> str:
    if options.fields or options.format != AUTO:
        return ROWS if options.fields else options.format
    suffix = file.suffix.lower()
    if suffix in _SEPARATED:
        return _separated(file, last)
    candidates = [one for one in formats.values() if suffix and suffix in one.suffixes]
    if len(candidates) > 1:
        return _best_match(file, candidates, last) or last or UNKNOWN
    return candidates[0].name if candidates else _TEXT if last is None else last


def _is_json_value(file: Path) -> bool:
    """Whether this is a JSON file with content, such as a configuration, and not JSON Lines."""
    return file.suffix.lower() == _JSON and not has_no_records(file)


def _separated(file: Path, last: str | None) -> str:
    """Rows if the header matches, else the format of the last reading."""
    from chunksink.ingest.formats.rows import header_matches

    try:
        return ROWS if header_matches(file) else last or UNKNOWN
    except (OSError, SourceFailed):
        return ROWS if last is None else last  # reading it reports the error


def _best_match(file: Path, candidates: list[Format], last: str | None) -> str | None:
    """The format that matches the first records best. Rows match at most as `POSSIBLE`: most records look like rows."""
    best, name = Match.NO, None
    try:
        records = list(first_records(file))
    except OSError:
        return candidates[0].name if last is None else last  # reading it reports the error
    if len(records) == 1:  # an object may contain the list of records
        records = find_records(records[0], lambda record: any(one.match(record) for one in candidates)) or records
    is_alone = len(records) == 1 and file.suffix.lower() == ".json"
    for record in records:
        for one in candidates:
            if isinstance(record, dict) and (match := one.match(record, is_alone=is_alone)) > best:
                best, name = match, one.name
        if best >= Match.LIKELY:
            break
    # A file that was once read as rows stays rows, even if a new column makes it look like chunks.
    return last if last == ROWS and name == "chunks" else name
