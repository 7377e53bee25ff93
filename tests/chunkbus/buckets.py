"""Readers of partitions in a bucket, on this machine and on others."""

from pathlib import Path

from chunksink.chunkbus.bucket import BucketStorage
from chunksink.chunkbus.bucket_partitions import BucketRoot
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.partition_cache import PartitionCache
from chunksink.chunkbus.reader import read_partition

KEY = "2026-01-31"


def read(root: BusRoot, key: str = KEY) -> list[Record]:
    return [record for _, record in read_partition(root, key)]


def elsewhere(root: BusRoot, folder: Path, limit: int = 2**30) -> BusRoot:
    """The same bucket on a machine without copies."""
    return BucketRoot(BucketStorage(root.address), PartitionCache(folder, limit))


def copies(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []
