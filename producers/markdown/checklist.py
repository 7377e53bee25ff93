"""The chunking specification's validation checklist (section 11), on the records of one document.

It trusts no number of the chunker: tokens are counted again and ids computed again from the record alone.
"""

from collections.abc import Iterator, Sequence

from chunksink.chunkbus.chunk import Record
from chunksink.producers.markdown.policy import Policy
from chunksink.producers.markdown.records import canonical_chunk_text, chunk_path, stable_chunk_id
from chunksink.producers.markdown.tokens import Tokenizer

_ROW = 64  # texts that are counted together


def find_problems(records: Sequence[Record], policy: Policy, tokenizer: Tokenizer) -> list[str]:
    """What breaks the checklist, each with its ordinal; an empty list is a valid chunking run."""
    problems = []
    under_heading = False
    sizes = _count_each([record["text"] for record in records], tokenizer)
    for place, (record, tokens) in enumerate(zip(records, sizes, strict=True)):
        metadata = record["metadata"]
        headings = metadata["headings_path"]
        problems += [f"chunk {place}: {problem}" for problem in _problems_of(record, place, tokens, policy)]
        if under_heading and not headings:
            problems.append(f"chunk {place}: has no headings_path, though it stands below a heading")
        under_heading = under_heading or bool(headings)
    if len({record["document_id"] for record in records}) > 1:
        problems.append("chunks of different documents are mixed")
    return problems


def _count_each(texts: Sequence[str], tokenizer: Tokenizer) -> Iterator[int]:
    """How many tokens each text has. One counter for a row of them takes less than one for each."""
    for first in range(0, len(texts), _ROW):
        row = texts[first : first + _ROW]
        count = tokenizer.counter("\n".join(row))
        start = 0
        for text in row:
            yield count(start, start + len(text))
            start += len(text) + 1


def _problems_of(record: Record, place: int, tokens: int, policy: Policy) -> list[str]:
    metadata, text = record["metadata"], record["text"]
    problems = []
    if not text.strip():
        problems.append("its text is empty")
    if tokens != metadata["token_count"]:
        problems.append(f"token_count is {metadata['token_count']}, the text has {tokens}")
    if tokens > policy.hard_max:
        problems.append(f"{tokens} tokens are over the hard maximum of {policy.hard_max}")
    if metadata["ordinal"] != place:
        problems.append(f"its ordinal is {metadata['ordinal']}")
    path = chunk_path(metadata["headings_path"], "")
    if not metadata["chunk_path"].startswith(path):
        problems.append(f"chunk_path {metadata['chunk_path']!r} does not begin with its headings")
    canonical = canonical_chunk_text(text, metadata["kind"], metadata["overlap_chars"])
    version = record["provenance"]["source_checksum"].removeprefix("sha256:")
    expected = stable_chunk_id(record.get("tenant_id"), record["document_id"], version, place, canonical)
    if record["chunk_id"] != expected:
        problems.append("its chunk_id is not the stable-id formula's")
    return problems
