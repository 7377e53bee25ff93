"""The validation checklist on chunks that stand in a partition, whoever wrote them there.

`checklist` is the gate that a source passes before it is written; this asks again what the partition holds now.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import read_partition
from chunksink.producers.markdown.checklist import find_problems
from chunksink.producers.markdown.policy import CANONICALIZER_NAME, Policy
from chunksink.producers.markdown.tokens import WordTokenizer


@dataclass(frozen=True)
class Breach:
    """A document that breaks the checklist: its source, the line of its first chunk, and what is wrong."""

    source_uri: str
    line: int
    reason: str


def audit(root: BusRoot, key: str) -> Iterator[Breach]:
    """Every breach in a valid partition, in the order of its lines. Chunks by other rules are passed over."""
    numbered = ((line, record) for line, (_, record) in enumerate(read_partition(root, key), start=1))
    for _, group in groupby(numbered, key=lambda numbered: _document(numbered[1])):
        members = list(group)
        line, first = members[0]
        policy_id = _policy_id(first)
        if policy_id is None:
            continue
        for reason in _problems([record for _, record in members], policy_id):
            yield Breach(first["provenance"].get("source_uri", first["document_id"]), line, reason)


def _document(record: Record) -> tuple[str, str | None]:
    return record["document_id"], _policy_id(record)


def _policy_id(record: Record) -> str | None:
    made = record["provenance"].get("canonicalizer") or {}
    if made.get("canonicalizer_name") != CANONICALIZER_NAME:
        return None
    return str(made.get("canonicalizer_version"))


def _problems(records: list[Record], policy_id: str) -> list[str]:
    tokenizer = WordTokenizer()
    policy = Policy.from_id(policy_id, tokenizer.version)
    if policy is None:
        return [f"was cut by {policy_id}, which this release does not know; ingest its source again"]
    try:
        return find_problems(records, policy, tokenizer)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return [f"lacks a field of the chunking specification, or has one of a wrong type: {error}"]
