"""Makes a bus of any size: chunks of about 1 kB in families of ten, the same for the same arguments.

    python -m bench.chunks DIR --chunks 1000000 --partitions 1

The texts are made-up words, or those that the caller has.
"""

import argparse
import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import ManifestProducer
from chunksink.chunkbus.writer import PartitionWriter

FAMILY = 10
CREATED_AT = "2026-01-01T00:00:00Z"
SEED = 7


def make_bus(
    folder: Path,
    chunks: int,
    partitions: int = 1,
    words: int = 55,
    seed: int = SEED,
    texts: Sequence[str] | None = None,
) -> BusRoot:
    """Writes `chunks` chunks in all, `words` words each, spread evenly over the partitions; or these texts."""
    root = BusRoot(folder)
    chance = random.Random(seed)
    vocabulary = _vocabulary(chance)
    for number in range(partitions):
        first, last = chunks * number // partitions, chunks * (number + 1) // partitions
        made = (
            _chunk(index, " ".join(chance.choices(vocabulary, k=words)) if texts is None else texts[index])
            for index in range(first, last)
        )
        _write(root, f"part-{number:05d}", made, documents=-(-(last - first) // FAMILY), created_at=CREATED_AT)
    return root


def change(root: BusRoot, documents: Sequence[int], version: int, words: int = 55) -> None:
    """New versions of some documents, in a partition of their own, later than all before."""
    chance = random.Random(version)
    vocabulary = _vocabulary(chance)
    created_at = (datetime.fromisoformat(CREATED_AT) + timedelta(days=version)).isoformat()
    made = (
        _chunk(document * FAMILY + place, " ".join(chance.choices(vocabulary, k=words)), version, created_at)
        for document in documents
        for place in range(FAMILY)
    )
    _write(root, f"change-{version:05d}", made, documents=len(documents), created_at=created_at)


def change_within(
    root: BusRoot, chunks: int, documents: Sequence[int], version: int, partitions: int = 1, words: int = 55
) -> None:
    """New versions of some documents of a bus, of which every partition is written anew for it."""
    texts, new_texts = random.Random(SEED), random.Random(version)
    vocabulary = _vocabulary(texts)
    created_at = (datetime.fromisoformat(CREATED_AT) + timedelta(days=version)).isoformat()

    def made(first: int, last: int) -> Iterable[Record]:
        for index in range(first, last):
            text = " ".join(texts.choices(vocabulary, k=words))
            if index // FAMILY in documents:
                yield _chunk(index, " ".join(new_texts.choices(vocabulary, k=words)), version, created_at)
            else:
                yield _chunk(index, text)

    for number in range(partitions):
        first, last = chunks * number // partitions, chunks * (number + 1) // partitions
        held = -(-(last - first) // FAMILY)
        _write(root, f"part-{number:05d}", made(first, last), documents=held, created_at=created_at)


def _write(root: BusRoot, key: str, made: Iterable[Record], *, documents: int, created_at: str) -> None:
    with PartitionWriter(root, key) as writer:
        for chunk in made:
            writer.add(chunk)
        writer.commit(documents=documents, producer=ManifestProducer("bench", "1"), created_at=created_at)


def _chunk(index: int, text: str, version: int = 0, created_at: str = CREATED_AT) -> Record:
    document = index // FAMILY
    name = f"document {document}" + (f" version {version}" if version else "")
    provenance = {
        "source_uri": f"docs/{document % 97:02d}/document-{document:07d}.md",
        "source_checksum": f"sha256:{version * 10**9 + document:064x}",
        "parser": {"parser_name": "bench", "parser_version": "1"},
        "canonicalizer": {"canonicalizer_name": "bench", "canonicalizer_version": "1"},
        "inputs": [],
    }
    return new_chunk(
        document_id=sha256(name.encode()).hexdigest(),
        text=text,
        provenance=provenance,
        span_key=index % FAMILY,
        created_at=created_at,
        fields={
            "chunk_index": index % FAMILY,
            "metadata": {"title": f"Document {document}", "language": "en"},
        },
    )


def _vocabulary(chance: random.Random) -> list[str]:
    letters = "etaoinshrdlu" * 3 + "cmfwypvbgkjqxz"
    return ["".join(chance.choices(letters, k=chance.randint(2, 10))) for _ in range(20_000)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--words", type=int, default=55)
    asked = parser.parse_args()
    make_bus(asked.folder, asked.chunks, asked.partitions, asked.words)
