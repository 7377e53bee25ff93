"""Checks a Chroma folder by opening and querying it, in a process that may crash. `seal` runs it.

Chroma overwrites its vector files in place. A kill in between can leave a graph that loads, answers some queries and
crashes at another. So the graph files are checked first.
"""

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

from chunksink.sinks.chroma.client import open_folder

_HEADER = struct.Struct("<i6QiI3QdQ")  # hnswlib as Chroma saves it
_VERSION = 1
_QUERIES = 50


def main(path: str) -> int:
    try:
        for header in Path(path).glob("*/header.bin"):
            if problem := flaw(header):
                sys.stdout.write(problem)
                return 1
        client = open_folder(Path(path))
        for collection in client.list_collections():
            count = collection.count()
            expected = min(10, count)
            for offset in range(0, count, count // _QUERIES + 1):
                some: Any = collection.get(limit=1, offset=offset, include=["embeddings"])
                answer = collection.query(query_embeddings=some["embeddings"], n_results=expected, include=[])
                if len(answer["ids"][0]) < expected:
                    sys.stdout.write("vectors are missing")
                    return 1
    except Exception as error:  # any error is reported to the caller
        sys.stdout.write(f"{type(error).__name__}: {error}")
        return 1
    return 0


def graph_size(folder: Path) -> int:
    """Vectors in the saved graphs of a build, including deleted ones."""
    headers = [
        _HEADER.unpack(raw) for raw in map(Path.read_bytes, folder.glob("*/header.bin")) if len(raw) == _HEADER.size
    ]
    return sum(count for version, _, _, count, *_ in headers if version == _VERSION)


def flaw(header: Path) -> str | None:
    """What is wrong with a saved graph; None if nothing is, or if its header has an unknown version."""
    raw = header.read_bytes()
    if len(raw) != _HEADER.size:
        return f"header.bin has {len(raw)} bytes"
    version, offset, most, count, size, at_label, at_vector, top, entry, upper, lower, *_ = _HEADER.unpack(raw)
    if version != _VERSION or offset != 0 or at_vector != 4 + 4 * lower or size != at_label + 8:
        return None if 0 <= version <= 100 and version != _VERSION else "header.bin is invalid"
    # The files of a new graph have room for `most` vectors.
    for name, each in (("data_level0.bin", size), ("length.bin", 4)):
        actual = header.with_name(name).stat().st_size
        if actual not in (count * each, most * each):
            return f"{name} has {actual} bytes instead of {count * each}"
    if count > most or (count and entry >= count):
        return "header.bin is invalid"
    if not count:
        return None
    levels, problem = _upper_levels(header.with_name("link_lists.bin").read_bytes(), count, upper)
    if problem is None and levels[entry] != top:
        problem = "header.bin and link_lists.bin are from different saves"
    return problem or _lowest_level(header.with_name("data_level0.bin"), count, size, at_label, lower)


def _upper_levels(raw: bytes, count: int, most: int) -> tuple[list[int], str | None]:
    """The level of each vector, and what is wrong with the links above the lowest level."""
    levels: list[int] = []
    place, width = 0, 4 + 4 * most
    for _ in range(count):
        if place + 4 > len(raw):
            return levels, "link_lists.bin ends early"
        [size] = struct.unpack_from("<I", raw, place)
        place += 4
        if size % width or place + size > len(raw):
            return levels, "link_lists.bin is invalid"
        for level in range(place, place + size, width):
            links = np.frombuffer(raw, np.uint32, 1 + most, level)
            number = int(links[0]) & 0xFFFF
            if number > most or (links[1 : 1 + number] >= count).any():
                return levels, "link_lists.bin has links to missing vectors"
        levels.append(size // width)
        place += size
    return levels, None if place == len(raw) else "link_lists.bin is too long"


def _lowest_level(path: Path, count: int, size: int, at_label: int, most: int) -> str | None:
    rows = np.memmap(path, np.uint8, "r", shape=(count, size))
    labels = []
    for start in range(0, count, 20_000):
        part = rows[start : start + 20_000]
        links = np.ascontiguousarray(part[:, : 4 + 4 * most]).view(np.uint32)
        numbers = links[:, :1] & 0xFFFF  # the upper half is the deletion flag
        used = np.arange(most) < numbers
        if (numbers > most).any() or (links[:, 1:][used] >= count).any():
            return "data_level0.bin has links to missing vectors"
        labels.append(np.ascontiguousarray(part[:, at_label:]).view(np.uint64)[:, 0])
    if len(np.unique(np.concatenate(labels))) < count:
        return "data_level0.bin has a vector twice"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
