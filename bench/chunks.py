"""Makes a bus of any size: chunks of about 1 kB in families of ten, the same for the same arguments.

python -m bench.chunks DIR --chunks 1000000 --partitions 1
"""

import argparse
import random
from hashlib import sha256
from pathlib import Path

from chunkbus.chunk import Record, new_chunk
from chunkbus.layout import BusRoot
from chunkbus.manifest import ManifestProducer
from chunkbus.writer import PartitionWriter

FAMILY = 10
CREATED_AT = "2026-01-01T00:00:00Z"


def make_bus(folder: Path, chunks: int, partitions: int = 1, words: int = 55, seed: int = 7) -> BusRoot:
    """Writes `chunks` chunks in all, `words` words each, spread evenly over the partitions."""
    root = BusRoot(folder)
    chance = random.Random(seed)
    vocabulary = _vocabulary(chance)
    for number in range(partitions):
        first, last = chunks * number // partitions, chunks * (number + 1) // partitions
        with PartitionWriter(root, f"part-{number:05d}") as writer:
            for index in range(first, last):
                writer.add(_chunk(index, vocabulary, words, chance))
            documents = -(-(last - first) // FAMILY)
            writer.commit(documents=documents, producer=ManifestProducer("bench", "1"), created_at=CREATED_AT)
    return root


def _chunk(index: int, vocabulary: list[str], words: int, chance: random.Random) -> Record:
    document = index // FAMILY
    provenance = {
        "source_uri": f"docs/{document % 97:02d}/document-{document:07d}.md",
        "source_checksum": f"sha256:{document:064x}",
        "parser": {"parser_name": "bench", "parser_version": "1"},
        "canonicalizer": {"canonicalizer_name": "bench", "canonicalizer_version": "1"},
        "inputs": [],
    }
    return new_chunk(
        document_id=sha256(f"document {document}".encode()).hexdigest(),
        text=" ".join(chance.choices(vocabulary, k=words)),
        provenance=provenance,
        span_key=index % FAMILY,
        created_at=CREATED_AT,
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
