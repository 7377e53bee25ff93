"""Breaks or removes partitions, and restores them."""

from collections.abc import Callable

from chunksink.chunkbus.layout import BusRoot

Damage = Callable[[BusRoot, str], None]


def cut_off(root: BusRoot, key: str) -> None:
    path = root.chunks_file(key)
    path.write_bytes(path.read_bytes()[:-10])


def take_away(root: BusRoot, key: str) -> None:
    root.chunks_file(key).unlink()
    root.manifest_file(key).unlink()


def lose_chunks(root: BusRoot, key: str) -> None:
    root.chunks_file(key).unlink()


def lose_manifest(root: BusRoot, key: str) -> None:
    root.manifest_file(key).unlink()


DAMAGES: tuple[Damage, ...] = (cut_off, take_away, lose_chunks, lose_manifest)


def damaged(root: BusRoot, key: str, damage: Damage) -> Callable[[], None]:
    """Damage a partition. The returned function restores it byte for byte."""
    before = {path: path.read_bytes() for path in (root.chunks_file(key), root.manifest_file(key))}
    damage(root, key)

    def put_back() -> None:
        for path, data in before.items():
            path.write_bytes(data)

    return put_back
