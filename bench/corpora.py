"""The corpora of the benchmarks: buses of any size, homes built from them, and texts for the model.

    python -m bench.corpora bus FOLDER CHUNKS PARTITIONS WORDS
    python -m bench.corpora cache BUS HOME

The same arguments always make the same bytes. A chunk has about 1 kB, and a family has ten chunks. `cache` fills a
home's cache with vectors generated from the hashes of the texts, under the name of the default model. So runs of the
command line are real except for the computation of vectors.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import accumulate, groupby, islice
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from bench.processes import chunksink, python
from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.manifest import ManifestProducer
from chunksink.chunkbus.writer import PartitionWriter
from chunksink.settings.fields import FieldOptions, FieldType
from chunksink.sinks.custom_fields import NO_FIELDS, FieldSet
from chunksink.sinks.document import Family
from chunksink.sinks.projection import project_family

DIMENSIONS = 384
FAMILY = 10
SINKS = ("fts", "jsonl", "chroma")
"""The sinks of the home that several cases share. None needs a server."""
CREATED_AT = datetime(2026, 1, 1, tzinfo=UTC)
_TYPES: dict[FieldType, str] = {
    "string": "project owner ticket",
    "strings": "labels reviewers",
    "number": "priority cost",
    "boolean": "approved public",
    "datetime": "due",
}
CUSTOM_FIELDS = FieldSet.of(
    {name: FieldOptions(type=kind, facet=True) for kind, names in _TYPES.items() for name in names.split()}
)
_SEED = 7
_IN_PARTITION = 1_000
_AT_ONCE = 400  # families that are written to the cache together


def write_bus(
    folder: Path,
    chunks: int,
    *,
    partitions: int = 1,
    words: int = 55,
    texts: Sequence[str] | None = None,
    changed: Collection[int] = (),
    edited: Collection[int] = (),
    version: int = 0,
    custom: bool = False,
) -> None:
    """Write chunks of generated words, or of `texts`, evenly distributed over the partitions.

    `changed` has the numbers of documents that get other words in every version. `edited` has the numbers of chunks
    that get a longer text; all chunks of their documents keep their ids. With `custom`, the chunks of documents
    that are neither changed nor edited have values of `CUSTOM_FIELDS`.
    """
    old_words, new_words = random.Random(_SEED), random.Random(version)
    vocabulary = _vocabulary(old_words)
    edited_documents = {index // FAMILY for index in edited}

    def records(first: int, last: int) -> Iterator[Record]:
        for index in range(first, last):
            text = " ".join(old_words.choices(vocabulary, k=words)) if texts is None else texts[index]
            if index // FAMILY in changed:
                yield _chunk(*divmod(index, FAMILY), " ".join(new_words.choices(vocabulary, k=words)), version)
            elif index // FAMILY in edited_documents:
                words_before = f"Version {version}. " if index in edited else ""
                yield _chunk(*divmod(index, FAMILY), words_before + text, version, keeps_ids=True)
            else:
                yield _chunk(*divmod(index, FAMILY), text, custom=custom)

    for number in range(partitions):
        first, last = chunks * number // partitions, chunks * (number + 1) // partitions
        _write(folder, f"part-{number:05d}", records(first, last), -(-(last - first) // FAMILY), version)


def add_partition(folder: Path, documents: Sequence[int], version: int) -> None:
    """Add a partition with new versions of some documents of a bus."""
    chance = random.Random(version)
    vocabulary = _vocabulary(chance)
    made = (
        _chunk(document, place, " ".join(chance.choices(vocabulary, k=55)), version)
        for document in documents
        for place in range(FAMILY)
    )
    _write(folder, f"change-{version:05d}", made, len(documents), version)


def write_growing(folder: Path, sizes: Mapping[int, int], version: int) -> None:
    """Write a partition; `sizes` gives the number of chunks of each document. If a document grows, its existing chunks
    keep their ids and words, as in a growing recording."""
    words = random.Random(_SEED)
    vocabulary = _vocabulary(words)
    made = (
        _chunk(document, place, " ".join(random.Random(f"{document} {place}").choices(vocabulary, k=55)), version, True)
        for document, size in sizes.items()
        for place in range(size)
    )
    _write(folder, "growing", made, len(sizes), version)


def _write(folder: Path, key: str, records: Iterable[Record], documents: int, version: int) -> None:
    with PartitionWriter(FolderRoot(folder), key) as writer:
        for record in records:
            writer.add(record)
        writer.commit(documents=documents, producer=ManifestProducer("bench", "1"), created_at=_created_at(version))


def _chunk(
    document: int, place: int, text: str, version: int = 0, keeps_ids: bool = False, custom: bool = False
) -> Record:
    name = f"document {document}" + (f" version {version}" if version and not keeps_ids else "")
    provenance = {
        "source_uri": f"docs/{document % 97:02d}/document-{document:07d}.md",
        "source_checksum": f"sha256:{version * 10**9 + document:064x}",
        "parser": {"parser_name": "bench", "parser_version": "1"},
        "canonicalizer": {"canonicalizer_name": "bench", "canonicalizer_version": "1"},
        "inputs": [],
    }
    metadata = {"title": f"Document {document}", "language": "en"} | (_custom_values(document) if custom else {})
    return new_chunk(
        document_id=hashlib.sha256(name.encode()).hexdigest(),
        text=text,
        provenance=provenance,
        span_key=place,
        created_at=_created_at(version),
        fields={"chunk_index": place, "metadata": metadata},
    )


def _custom_values(document: int) -> Record:
    """The ten values of a document: facets with 20 to 1,000 values, and values that no other document has."""
    return {
        "project": f"project-{document % 20}",
        "owner": f"Owner {document * 7 % 1000}",
        "labels": [f"label-{document % 30}", f"label-{document % 7}"],
        "reviewers": [f"Reviewer {document % 50}"],
        "priority": document % 5,
        "cost": document / 8,
        "approved": document % 3 == 0,
        "public": document % 2 == 0,
        "due": (CREATED_AT + timedelta(days=document % 365)).isoformat(),
        "ticket": f"T-{document}",
    }


def _created_at(version: int) -> str:
    return (CREATED_AT + timedelta(days=version)).isoformat()


def natural_texts(count: int, words: int) -> tuple[list[str], list[str]]:
    """Texts whose word frequencies resemble a language's, and their vocabulary, the most frequent word first."""
    chance = random.Random(_SEED)
    vocabulary = list(dict.fromkeys(_vocabulary(chance)))
    weights = list(accumulate(1 / rank for rank in range(1, len(vocabulary) + 1)))
    return [" ".join(chance.choices(vocabulary, cum_weights=weights, k=words)) for _ in range(count)], vocabulary


def _vocabulary(chance: random.Random) -> list[str]:
    letters = "etaoinshrdlu" * 3 + "cmfwypvbgkjqxz"
    return ["".join(chance.choices(letters, k=chance.randint(2, 10))) for _ in range(20_000)]


def drawn(texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors from the hashes of texts."""
    seeds = b"".join(hashlib.shake_128(text.encode()).digest(DIMENSIONS) for text in texts)
    rows = np.frombuffer(seeds, dtype=np.int8).reshape(len(texts), DIMENSIONS) + np.float32(0.5)
    vectors: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return vectors


def families(bus: Path, fields: FieldSet = NO_FIELDS) -> Iterator[Family]:
    """The families of a bus as sinks get them, with generated vectors. The chunks of each family must be adjacent."""
    for file in sorted((bus / "canonical").glob("*.jsonl")):
        with file.open("rb") as lines:
            for _, members in groupby(map(orjson.loads, lines), key=lambda record: record["document_id"]):
                documents = project_family(list(members), fields)
                yield Family(documents, drawn([document.text for document in documents]))


def fill_cache(bus: Path, home: Path) -> None:
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.settings import EncoderSettings, open_encoder
    from chunksink.rebuild.families import passage_of
    from chunksink.settings.config import Config

    with closing(open_encoder(EncoderSettings.of(Config()), network=False)) as encoder:
        info = encoder.info
    home.mkdir(parents=True, exist_ok=True)
    every = families(bus)
    with VectorCache.open(home / "vectors.db") as cache:
        while some := list(islice(every, _AT_ONCE)):
            passages = (passage_of(document) for family in some for document in family.documents)
            texts = {info.key(passage.key): passage.text for passage in passages}
            cache.put(info, list(texts), drawn(list(texts.values())))


def shared_bus(shared: Path, chunks: int, *, partitions: int | None = None, words: int = 55) -> Path:
    """A bus with this many chunks, by default 1,000 in a partition, created once in a run. A separate process creates
    it, so that this does not count as memory of the case. `built_home` and `warm_home` do the same."""
    count = max(1, chunks // _IN_PARTITION) if partitions is None else partitions
    folder = shared / f"bus-{chunks}-{count}-{words}"
    if not folder.exists():
        python("bench.corpora", "bus", folder, str(chunks), str(count), str(words))
    return folder


def built_home(shared: Path, bus: Path, *sinks: str) -> Path:
    """A home with a built index of the bus. Callers copy it before they write."""
    folder = shared / f"home-{bus.name}-{'-'.join(sinks)}"
    if not folder.exists():
        draft = folder.with_suffix(".draft")
        if set(sinks) & {"chroma", "meilisearch", "postgres"}:
            python("bench.corpora", "cache", bus, draft)
        chunksink("rebuild", bus, draft, sinks=",".join(sinks))
        draft.rename(folder)
    return folder


def warm_home(shared: Path, bus: Path, *sinks: str) -> Path:
    """A home with all vectors of the bus in its cache, and a live index of one chunk, whose records name the model. So
    the next rebuild does not load the model."""
    folder = shared / f"warm-{bus.name}-{'-'.join(sinks)}"
    if not folder.exists():
        draft = folder.with_suffix(".draft")
        shutil.copytree(built_home(shared, shared_bus(shared, 1), *sinks), draft, symlinks=True)
        python("bench.corpora", "cache", bus, draft)
        draft.rename(folder)
    return folder


def markdown(data: Path | None) -> list[Path]:
    """The Rust book if the data has it, otherwise the pages of this project."""
    book = data / "rust-book" / "src" if data else None
    if book is not None and book.is_dir():
        return sorted(book.rglob("*.md"))
    return sorted(Path(__file__).parent.parent.glob("docs/**/*.md"))


def prose(data: Path | None) -> str:
    return "\n\n".join(path.read_text(encoding="utf-8", errors="replace") for path in markdown(data))


def even(corpus: str, count: int, size: int = 1050) -> list[str]:
    """Different texts of one length, cut from the corpus. At its end, the next pass starts 97 characters later."""
    whole = len(corpus) // size - 1
    starts = (number % whole * size + number // whole * 97 for number in range(count))
    return [corpus[start : start + size] for start in starts]


def mixed(corpus: str, count: int) -> list[str]:
    """Texts with the lengths of typical chunks: log-normal around 500 characters, some of them long."""
    chance = random.Random(2)
    sizes = [int(min(3000, max(20, chance.lognormvariate(6.2, 0.9)))) for _ in range(count)]
    starts = [chance.randrange(len(corpus) - 3000) for _ in range(count)]
    return [corpus[start : start + size] for start, size in zip(starts, sizes, strict=True)]


def main() -> None:
    command, *arguments = sys.argv[1:]
    if command == "bus":
        chunks, partitions, words = map(int, arguments[1:])
        write_bus(Path(arguments[0]), chunks, partitions=partitions, words=words)
    else:
        fill_cache(*map(Path, arguments))


if __name__ == "__main__":
    main()
