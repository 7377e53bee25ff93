"""From suspected families to proven splits: the suspects' lines are read again and their ids compared."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chunksink.chunkbus.chunk import Provenance
from chunksink.chunkbus.examine import MAX_LINE_BYTES, examine_line
from chunksink.chunkbus.families import Stretch, number_version
from chunksink.chunkbus.findings import has_error
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import open_partition


@dataclass(frozen=True)
class Split:
    """One partition's share of a split family: its first line there, its document, and why it counts as split."""

    partition: str
    line: int
    document_id: str
    reason: str


def find_splits(
    root: BusRoot, partitions: list[str], suspects: Iterator[list[Stretch]], unknown: Mapping[int, int]
) -> Iterator[Split]:
    """Not of a family of which a line was refused: that line is what is to be mended first. `unknown` lines of a
    partition, which do not say whose they are, may be what any of its families lacks."""
    for stretches in suspects:
        shares: dict[int, list[Stretch]] = defaultdict(list)
        for stretch in stretches:
            shares[stretch.partition].append(stretch)
        yield from _judge(root, partitions, shares, unknown)


def _judge(
    root: BusRoot, partitions: list[str], shares: dict[int, list[Stretch]], unknown: Mapping[int, int]
) -> Iterator[Split]:
    held = {number: _read_share(root, partitions[number], share) for number, share in shares.items()}
    ids = {number: found.documents for number, found in held.items()}
    for number, share in sorted(shares.items()):
        if not ids[number]:
            continue  # rewritten while it was validated, or refused; the next run sees what it is then
        apart = [
            other
            for other in sorted(shares)
            if other != number and ids[other] and ids[other].keys().isdisjoint(ids[number])
        ]
        expected = max(stretch.expected for stretch in share)
        if apart:
            names = ", ".join(partitions[other] for other in apart)
            reason = f"other chunks of the same version stand in partition {names}"
        elif len(ids[number]) + unknown.get(number, 0) < expected:
            here = f"{len(ids[number])} of the {expected} chunks that chunk_count names are here"
            reason = f"{here} with {held[number].read_by}; the others are not here, or not of the same version"
        else:
            continue
        document_id = next(iter(ids[number].values()))
        yield Split(partitions[number], min(stretch.line for stretch in share), document_id, reason)


@dataclass
class _Held:
    """What is there of one version: the document of each chunk id, and what all of them were read by."""

    documents: dict[str, str]
    read_by: str = ""


def _read_share(root: BusRoot, key: str, share: list[Stretch]) -> _Held:
    """The share's chunks without those that are gone since the partition was validated.

    None at all where a line of it is refused.
    """
    held = _Held({})
    try:
        file, _ = open_partition(root, key)
    except OSError:
        return held
    with file:
        for stretch in share:
            file.seek(stretch.offset)
            for _ in range(stretch.chunks):
                chunk, problems = examine_line(file.readline(MAX_LINE_BYTES + 2).removesuffix(b"\n"))
                if chunk is None or has_error(problems):
                    return _Held({})
                if number_version(chunk) == stretch.version:
                    held.documents[chunk.chunk_id] = chunk.document_id
                    held.read_by = held.read_by or _readers(chunk.provenance)
    return held


def _readers(provenance: Provenance) -> str:
    pairs = (provenance.parser_pair(), provenance.canonicalizer_pair())
    parser, canonicalizer = (f"{name} {version}" for name, version in pairs)
    return f"the parser {parser!r:.80} and the canonicalizer {canonicalizer!r:.80}"
