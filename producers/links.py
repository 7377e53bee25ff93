"""The link artifact of a partition: `links/<key>.jsonl` below the bus root, one link a line.

Made from the partition's chunks and the names of the sources in all partitions that an ingest wrote, so it can be made
again at any time, and carried-over families keep their links. Before a run writes any partition it drops those that its
changes make untrue, and once all are written it makes those that are not there: a kill leaves none, never an old one.
"""

import os
import re
import secrets
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import tenant_id
from chunksink.chunkbus.layout import BusRoot, check_partition_key
from chunksink.chunkbus.reader import read_partition
from chunksink.producers.changed import Changed
from chunksink.producers.memory import Memory
from chunksink.producers.shelves import Shelves
from chunksink.producers.targets import NOT_AS_WRITTEN, Targets


def links_file(root: BusRoot, key: str) -> Path:
    return root.path / "links" / f"{check_partition_key(key)}.jsonl"


def drop_links(root: BusRoot, keys: Collection[str]) -> None:
    """The artifacts of these partitions, and what other runs have begun of them, killed or not."""
    for key in keys:
        links_file(root, key).unlink(missing_ok=True)
    folder = root.path / "links"
    for entry in folder.glob(".*.new") if keys else ():
        if (begun := _BEGUN.fullmatch(entry.name)) and begun["key"] in keys:
            entry.unlink(missing_ok=True)


def drop_untrue(root: BusRoot, keys: Iterable[str], changed: Changed) -> None:
    """The artifacts of those partitions that have a link to what changes."""
    if changed:
        drop_links(root, {key for key in keys if _is_untrue(links_file(root, key), changed)})


def _is_untrue(path: Path, changed: Changed) -> bool:
    """Also where there is none: another run may be about to put one there."""
    try:
        with path.open("rb") as file:
            return any(changed.concerns(*_told(orjson.loads(line))) for line in file)
    except (OSError, sqlite3.Error, *NOT_AS_WRITTEN):
        return True


_BEGUN = re.compile(r"\.(?P<key>.+)\.[0-9a-f]{16}\.new")
_CONCERNS = ("tenant_id", "source_uri", "url", "link_type", "target_uri")


def _told(line: Record) -> list[Any]:
    told = [line[name] for name in _CONCERNS]
    if not all(value is None or isinstance(value, str) for value in told):
        raise TypeError("not as we write them")
    return told


def make_links(root: BusRoot, shelves: Shelves, tables: Connection, memory: Memory, *, all_anew: bool) -> int:
    """Artifacts of partitions that were written, and those that were dropped or that somebody removed. Returns how many
    links they hold."""
    own = [key for key in shelves.existing if root.manifest_file(key).exists()]
    missing = [key for key in sorted({*own, *shelves.others}) if all_anew or not links_file(root, key).exists()]
    if not missing:
        return 0
    drop_links(root, set(missing))
    targets = Targets(tables, root, shelves, memory)
    links = 0
    for key in missing:
        try:
            links += write_links(root, key, targets)
        except (OSError, *NOT_AS_WRITTEN):
            if key not in shelves.others:  # it is not valid: its own ingest, and validation, say so
                raise
    if not targets.are_current():  # another run changed what they lead to: the next one makes them
        drop_links(root, set(missing))
    return links


def write_links(root: BusRoot, key: str, targets: Targets) -> int:
    """Writes the artifact anew and returns how many links it holds."""
    path = links_file(root, key)
    path.parent.mkdir(exist_ok=True)
    new = path.with_name(f".{key}.{secrets.token_hex(8)}.new")
    count = 0
    try:
        with new.open("xb") as file:
            for _, record in read_partition(root, key):
                for link in _links(record):
                    file.write(orjson.dumps(_line(record, link, targets), option=orjson.OPT_APPEND_NEWLINE))
                    count += 1
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):  # who writes the partition again dropped it, and writes its own
            new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    return count


def _line(record: Record, link: Record, targets: Targets) -> Record:
    tenant, uri = tenant_id(record), record["provenance"].get("source_uri")
    stated = link.get("target_uri") if isinstance(link.get("target_uri"), str) else None
    target, document = targets.of(tenant, uri, link["url"], link["link_type"], stated)
    return {
        "source_document_id": record["document_id"],
        "source_uri": uri,
        "chunk_id": record["chunk_id"],
        "tenant_id": tenant,
        "url": link["url"],
        "link_type": link["link_type"],
        "target_uri": target,
        "target_document_id": document,
    }


def _links(record: Record) -> Iterator[Record]:
    """Those of our own form: chunks of others may have anything there."""
    links = (record.get("metadata") or {}).get("links")
    for link in links if isinstance(links, list) else ():
        if isinstance(link, dict) and all(isinstance(link.get(name), str) for name in ("url", "link_type")):
            yield link
