"""Looks at a Chroma folder, opens it and asks its vectors something, in a process that may die of it. `seal` runs it.

Chroma writes over its vector file in place, so that a kill in between leaves a graph that loads, answers some
questions, and takes the process down at another one. So first the graph is read as a file.
"""

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

from chunksink.sinks.chroma.client import open_folder

_HEADER = struct.Struct("<i6QiI3QdQ")  # hnswlib as Chroma saves it
_VERSION = 1
_QUESTIONS = 50


def main(path: str) -> int:
    try:
        for header in Path(path).glob("*/header.bin"):
            if said := flaw(header):
                sys.stdout.write(said)
                return 1
        client = open_folder(Path(path))
        for collection in client.list_collections():
            count = collection.count()
            wanted = min(10, count)
            for offset in range(0, count, count // _QUESTIONS + 1):
                some: Any = collection.get(limit=1, offset=offset, include=["embeddings"])
                answer = collection.query(query_embeddings=some["embeddings"], n_results=wanted, include=[])
                if len(answer["ids"][0]) < wanted:
                    sys.stdout.write("vectors are missing")
                    return 1
    except Exception as error:  # whatever it is, it goes to the one who asked
        sys.stdout.write(f"{type(error).__name__}: {error}")
        return 1
    return 0


def graph_size(folder: Path) -> int:
    """Vectors in the saved graphs of a build, deleted ones among them."""
    headers = [
        _HEADER.unpack(raw) for raw in map(Path.read_bytes, folder.glob("*/header.bin")) if len(raw) == _HEADER.size
    ]
    return sum(count for version, _, _, count, *_ in headers if version == _VERSION)


def flaw(header: Path) -> str | None:
    """What is wrong with a saved graph; None where nothing is, or where it is laid out in a way unknown here."""
    raw = header.read_bytes()
    if len(raw) != _HEADER.size:
        return f"header.bin has {len(raw)} bytes"
    version, offset, most, count, size, at_label, at_vector, top, entry, upper, lower, *_ = _HEADER.unpack(raw)
    if version != _VERSION or offset != 0 or at_vector != 4 + 4 * lower or size != at_label + 8:
        return None if 0 <= version <= 100 and version != _VERSION else "header.bin makes no sense"
    # A graph that was only just made has room for all that it may ever hold.
    for name, each in (("data_level0.bin", size), ("length.bin", 4)):
        held = header.with_name(name).stat().st_size
        if held not in (count * each, most * each):
            return f"{name} has {held} bytes of {count * each}"
    if count > most or (count and entry >= count):
        return "header.bin makes no sense"
    if not count:
        return None
    levels, said = _upper(header.with_name("link_lists.bin").read_bytes(), count, upper)
    if said is None and levels[entry] != top:
        said = "header.bin is of another save than link_lists.bin"
    return said or _lower(header.with_name("data_level0.bin"), count, size, at_label, lower)


def _upper(raw: bytes, count: int, most: int) -> tuple[list[int], str | None]:
    """The level of each vector; the links of those above the lowest one must lead somewhere."""
    levels: list[int] = []
    place, width = 0, 4 + 4 * most
    for _ in range(count):
        if place + 4 > len(raw):
            return levels, "link_lists.bin ends early"
        [size] = struct.unpack_from("<I", raw, place)
        place += 4
        if size % width or place + size > len(raw):
            return levels, "link_lists.bin makes no sense"
        for level in range(place, place + size, width):
            links = np.frombuffer(raw, np.uint32, 1 + most, level)
            number = int(links[0]) & 0xFFFF
            if number > most or (links[1 : 1 + number] >= count).any():
                return levels, "link_lists.bin leads nowhere"
        levels.append(size // width)
        place += size
    return levels, None if place == len(raw) else "link_lists.bin goes on"


def _lower(path: Path, count: int, size: int, at_label: int, most: int) -> str | None:
    rows = np.memmap(path, np.uint8, "r", shape=(count, size))
    labels = []
    for start in range(0, count, 20_000):
        part = rows[start : start + 20_000]
        links = np.ascontiguousarray(part[:, : 4 + 4 * most]).view(np.uint32)
        numbers = links[:, :1] & 0xFFFF  # the upper half holds whether it is deleted
        used = np.arange(most) < numbers
        if (numbers > most).any() or (links[:, 1:][used] >= count).any():
            return "data_level0.bin leads nowhere"
        labels.append(np.ascontiguousarray(part[:, at_label:]).view(np.uint64)[:, 0])
    if len(np.unique(np.concatenate(labels))) < count:
        return "data_level0.bin holds a vector twice"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
