"""From a document to checked chunks and notices: the step that all formats with text share."""

from collections.abc import Iterator, Sequence

import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.errors import NotCanonical
from chunksink.chunkbus.examine import MAX_LINE_BYTES
from chunksink.chunkbus.identity import family_key, resolve_parent_id
from chunksink.ingest.checklist import find_problems
from chunksink.ingest.codes import CHUNKING_FAILED, MEANINGS, SOURCE_EMPTY
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.markdown.document import Document
from chunksink.ingest.formats.markdown.passages import Passage, cut
from chunksink.ingest.formats.markdown.policy import DEFAULT_POLICY, Policy
from chunksink.ingest.formats.markdown.records import build_records
from chunksink.ingest.formats.registry import Format
from chunksink.ingest.model import Empty, Family, Item, Notice, Source


def chunk_document(
    document: Document, source: Source, format_: Format, policy: Policy = DEFAULT_POLICY
) -> Iterator[Item]:
    """The family of the source, then notices; `Empty` if it has no text. Raises SourceFailed."""
    passages = list(cut(document, policy))
    if passages:
        yield Family(_records(document, passages, source, format_, policy))
    else:
        yield Notice(SOURCE_EMPTY, MEANINGS[SOURCE_EMPTY][0], is_failure=False)
        yield Empty(family_key(resolve_parent_id(None, source.uri, source.document_id), source.tenant))
    for code in sorted(document.odd):
        yield Notice(code, MEANINGS[code][0], is_failure=False)


def _records(
    document: Document, passages: Sequence[Passage], source: Source, format_: Format, policy: Policy
) -> list[Record]:
    try:
        records = list(build_records(document, passages, source, format_, policy.policy_id))
    except NotCanonical as error:
        raise SourceFailed(findings.JSON_PARSE, str(error)) from error
    if problems := find_problems(records, policy):
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise SourceFailed(CHUNKING_FAILED, f"the chunks break the chunking checklist: {problems[0]}{more}")
    for number, record in enumerate(records):
        if len(orjson.dumps(record)) > MAX_LINE_BYTES:
            raise SourceFailed(findings.LINE_TOO_LONG, f"chunk {number} is longer than {MAX_LINE_BYTES // 2**20} MiB")
    return records
