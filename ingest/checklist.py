"""The validation checklist of the chunking specifications (section 11).

Every document that is cut by `chunk_document` must pass it before it is written, and `chunksink validate --chunking`
repeats it on partitions. Tokens and ids are computed again from the record alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import parent_id, tenant_id
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import read_partition
from chunksink.ingest.formats.markdown import tokens
from chunksink.ingest.formats.markdown.policy import CANONICALIZER_NAME, POLICIES, Policy
from chunksink.ingest.formats.markdown.records import chunk_ids, chunk_path


@dataclass(frozen=True)
class Breach:
    """A document that breaks the checklist; `line` is that of its first chunk in the partition."""

    source_uri: str
    line: int
    reason: str


def find_problems(records: Sequence[Record], policy: Policy) -> list[str]:
    """The problems in the records of one document; empty if they are valid."""
    problems = []
    under_heading = False
    ids = _expected_ids(records[0], records, policy) if records else ()
    for place, (record, chunk_id) in enumerate(zip(records, ids, strict=True)):
        headings = record["metadata"]["headings_path"]
        problems += [f"chunk {place}: {problem}" for problem in _problems_of(record, place, chunk_id, policy)]
        if under_heading and not headings:
            problems.append(f"chunk {place}: has no headings_path, but follows a heading")
        under_heading = under_heading or bool(headings)
    if len({record["document_id"] for record in records}) > 1:
        problems.append("chunks of different documents are mixed")
    return problems


def find_breaches(root: BusRoot, key: str) -> Iterator[Breach]:
    """Every breach in a partition that has passed validation, in the order of its lines.

    Chunks whose canonicalizer is not `chunksink-markdown` are skipped: the checklist is not for them.
    """
    numbered = ((line, record) for line, (_, record) in enumerate(read_partition(root, key), start=1))
    for (document_id, policy_id), group in groupby(numbered, key=lambda entry: _document_of(entry[1])):
        if policy_id is not None:
            lines, records = zip(*group, strict=True)
            uri = records[0]["provenance"].get("source_uri", document_id)
            yield from (Breach(uri, lines[0], reason) for reason in _problems_by_policy(records, policy_id))


def _document_of(record: Record) -> tuple[str, str | None]:
    """The document's id, and the policy that it was cut by."""
    canonicalizer = record["provenance"].get("canonicalizer") or {}
    is_ours = canonicalizer.get("canonicalizer_name") == CANONICALIZER_NAME
    return record["document_id"], str(canonicalizer.get("canonicalizer_version")) if is_ours else None


def _problems_by_policy(records: Sequence[Record], policy_id: str) -> list[str]:
    policy = next((policy for policy in POLICIES.values() if policy.policy_id == policy_id), None)
    if policy is None:
        return [f"was cut by {policy_id}, which is unknown to this release; ingest its source again"]
    try:
        return find_problems(records, policy)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return [f"a field of the chunking specification is missing or has the wrong type: {error}"]


def _expected_ids(first: Record, records: Sequence[Record], policy: Policy) -> Iterator[str]:
    version = first["provenance"]["source_checksum"].removeprefix("sha256:")
    parts = ((one["text"], one["metadata"]["kind"], one["metadata"]["overlap_chars"]) for one in records)
    return chunk_ids(policy, tenant_id(first), parent_id(first), first["document_id"], version, parts)


def _problems_of(record: Record, place: int, chunk_id: str, policy: Policy) -> Iterator[str]:
    metadata, text = record["metadata"], record["text"]
    size = tokens.count(text)
    if not text.strip():
        yield "its text is empty"
    if size != metadata["token_count"]:
        yield f"token_count is {metadata['token_count']}, the text has {size}"
    if size > policy.hard_max:
        yield f"{size} tokens are over the hard maximum of {policy.hard_max}"
    if metadata["ordinal"] != place:
        yield f"its ordinal is {metadata['ordinal']}"
    if not metadata["chunk_path"].startswith(chunk_path(metadata["headings_path"], "")):
        yield f"chunk_path {metadata['chunk_path']!r} does not begin with its headings"
    if record["chunk_id"] != chunk_id:
        yield "its chunk_id does not match the formula"
