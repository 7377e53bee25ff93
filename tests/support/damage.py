"""Breaks or removes partitions, and restores them."""

from collections.abc import Callable

from chunksink.chunkbus.folder_partitions import FolderRoot

Damage = Callable[[FolderRoot, str], None]


def cut_off(root: FolderRoot, key: str) -> None:
    path = root.chunks_file(key)
    path.write_bytes(path.read_bytes()[:-10])


def take_away(root: FolderRoot, key: str) -> None:
    root.chunks_file(key).unlink()
    root.manifest_file(key).unlink()


def lose_chunks(root: FolderRoot, key: str) -> None:
    root.chunks_file(key).unlink()


def lose_manifest(root: FolderRoot, key: str) -> None:
    root.manifest_file(key).unlink()


DAMAGES: tuple[Damage, ...] = (cut_off, take_away, lose_chunks, lose_manifest)


def damaged(root: FolderRoot, key: str, damage: Damage) -> Callable[[], None]:
    """Damage a partition. The returned function restores it byte for byte."""
    before = {path: path.read_bytes() for path in (root.chunks_file(key), root.manifest_file(key))}
    damage(root, key)

    def put_back() -> None:
        for path, data in before.items():
            path.write_bytes(data)

    return put_back
