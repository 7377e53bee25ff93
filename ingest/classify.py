"""Stage 2: determines the format of each file, and whether it has changed since it was last read."""

import os
import sqlite3
from collections.abc import Collection, Mapping
from contextlib import suppress
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
from chunksink.ingest.report import Failure, Outcome
from chunksink.ingest.roots import Roots
from chunksink.ingest.store import pages, set_found, signature_columns

UNKNOWN = ""
"""The format of a file whose content no format recognises."""
_TEXT = "text"
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
    time decides the partition. Returns the named files that no format recognises; other such files are only counted.
    """
    failures = []
    versions_by = cache(lambda name, policy: versions_of(formats[name].with_policy(policy)))
    finds_format = options.format == AUTO and not options.fields
    taken = taken_suffixes(formats) if finds_format else {}
    values = {"tenant": options.tenant or "", "only": only}
    for page in pages(db, _WITH_LAST_READING, values):
        recognised: list[tuple[Any, ...]] = []
        for uri, path, codes, checksum, last_format, last_versions, families, placement, last_failures, *last in page:
            signature = _signature(path)
            columns = signature_columns(signature)
            is_same = not options.checksum and signature is not None and [*columns.values()] == last
            was_unknown = is_same and last_format == UNKNOWN
            needs_fields = finds_format and last_format == ROWS and "=" in last_versions
            if last_format not in formats or needs_fields:  # not installed, or without its --field options
                last_format = UNKNOWN if families else None  # perhaps another format recognises the file
            name = (last_format or None) if is_same and finds_format else None
            if taken:
                name = taken.get(Path(os.fsdecode(path)).suffix.lower(), name)
            if name is None:
                name = _format_of(path, options, formats, path in named, last_format)
            if name == UNKNOWN:
                is_empty = SOURCE_EMPTY in codes if was_unknown else has_no_records(Path(os.fsdecode(path)))
                code = SOURCE_EMPTY if is_empty else RECORD_FORM_UNKNOWN
                is_failure = path in named and not is_empty
                if is_failure:
                    file = Path(os.fsdecode(path))
                    found = None if file.suffix.lower() in _SEPARATED else first_problem(file)
                    problem = found or Notice(code, _NO_FORMAT)
                    code = problem.code
                    failures.append(Failure(uri, code, problem.reason, problem.line))
                reading = {"format": name, "outcome": Outcome.LEFT_OUT, "is_whole": is_empty, "failures": is_failure}
                set_found(db, uri, codes=orjson.dumps({code: 1}).decode(), error=code, **reading, **columns)
                continue
            versions = versions_by(name, roots.policy_of(uri))
            if (last_format, last_versions, placement, last_failures) != (name, versions, options.partition, 0):
                codes, checksum, is_same = "{}", None, False
            if not is_same and options.partition == Rule.BY_DATE:
                checksum = None  # its time determines the partition
            outcome = Outcome.UNCHANGED if is_same else None
            recognised.append((name, versions, outcome, checksum, codes, *columns.values(), uri))
        db.executemany(_RECOGNISED, recognised)
    db.execute(_READ_WHERE_FAMILIES_ARE_MISSING, values)
    return failures


_NO_FORMAT = "no format recognises its records: name one with --as, or name the text field of rows: --field text=NAME"
_WITH_LAST_READING = """
select found.uri, found.path, source.codes, source.checksum, source.format, source.versions, source.families,
  source.placement, source.failures, source.size, source.mtime_ns, source.ctime_ns, source.inode
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
where checksum is not null and (
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


def _signature(path: bytes) -> Signature | None:
    with suppress(OSError):  # reading it reports the error
        return Signature.of(os.stat(path))  # noqa: PTH116 (many files)
    return None


def _format_of(path: bytes, options: Options, formats: Mapping[str, Format], is_named: bool, last: str | None) -> str:
    if options.fields or options.format != AUTO:
        return ROWS if options.fields else options.format
    file = Path(os.fsdecode(path))
    suffix = file.suffix.lower()
    if suffix in _SEPARATED:
        return _separated(file, may_be_text=not is_named and last in (None, _TEXT)) or last or UNKNOWN
    candidates = [one for one in formats.values() if suffix and suffix in one.suffixes]
    if len(candidates) > 1:
        return _best_match(file, candidates, last) or last or UNKNOWN
    return candidates[0].name if candidates else _TEXT if last is None else last


def _separated(file: Path, *, may_be_text: bool) -> str | None:
    """Rows if the header matches. Otherwise text, or None if the file was named or last read in another format.

    A file that cannot be opened, or that has a broken header and cannot be text, counts as rows: reading it reports the
    error.
    """
    from chunksink.ingest.formats.rows import header_matches

    try:
        if header_matches(file):
            return ROWS
    except OSError:
        return ROWS
    except SourceFailed:
        return _TEXT if may_be_text else ROWS
    return _TEXT if may_be_text else None


def _best_match(file: Path, candidates: list[Format], last: str | None) -> str | None:
    """The format that matches the first records best. Rows match at most as `POSSIBLE`: most records look like rows."""
    best, name = Match.NO, None
    try:
        records = list(first_records(file))
    except OSError:
        return last or candidates[0].name  # reading it reports the error
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
