"""Segment files of a small encoder, in a folder."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from chunksink.chunkbus.storage import Storage
from chunksink.embeddings.segments import write_segment
from tests.embeddings.helpers import HashEncoder, stream

ENCODER = HashEncoder()


def keys_of(texts: Iterable[str], encoder: HashEncoder = ENCODER) -> list[bytes]:
    return [encoder.info.key(passage.key) for passage in stream(texts)]


def written(place: Storage, texts: list[str], encoder: HashEncoder = ENCODER) -> str:
    return write_segment(place, encoder.info, keys_of(texts, encoder), encoder.encode(texts))


def file_of(tmp_path: Path, name: str) -> Path:
    return tmp_path / "place" / name


def renamed(tmp_path: Path, data: bytes) -> str:
    """A file with this content under its proper name, as a program with another idea of segments could write it."""
    name = f"{hashlib.sha256(data).hexdigest()}.arrow"
    file_of(tmp_path, name).write_bytes(data)
    return name
