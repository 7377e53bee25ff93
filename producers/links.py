"""The link artifact of a partition: `links/<key>.jsonl` below the bus root, one link a line.

Made from the partition's chunks and the names of the sources in all partitions that an ingest wrote, so it can be made
again at any time, and carried-over families keep their links. Before a run writes any partition it drops those that its
changes make untrue, and once all are written it makes those that are not there: a kill leaves none, never an old one.
"""

import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import orjson

from chunkbus.chunk import Record
from chunkbus.layout import BusRoot, check_partition_key
from chunkbus.reader import read_partition
from producers.targets import Changed, Targets


def links_file(root: BusRoot, key: str) -> Path:
    return root.path / "links" / f"{check_partition_key(key)}.jsonl"


def drop_links(root: BusRoot, key: str) -> None:
    """The artifact, and what a run that was killed has left of one."""
    path = links_file(root, key)
    path.unlink(missing_ok=True)
    left = re.compile(rf"\.{re.escape(key)}\.[0-9a-f]{{16}}\.new")
    for entry in path.parent.glob(".*.new"):
        if left.fullmatch(entry.name):
            entry.unlink(missing_ok=True)


def drop_untrue(root: BusRoot, keys: Iterable[str], changed: Changed) -> None:
    """The artifacts of those partitions that have a link to what changes."""
    for key in keys if changed else ():
        if _is_untrue(links_file(root, key), changed):
            drop_links(root, key)


def _is_untrue(path: Path, changed: Changed) -> bool:
    try:
        with path.open("rb") as file:
            lines = map(orjson.loads, file)
            return any(changed.concerns(*(line[name] for name in _CONCERNS)) for line in lines)
    except FileNotFoundError:
        return False
    except (ValueError, TypeError, KeyError):  # not as we write them
        return True


_CONCERNS = ("tenant_id", "source_uri", "url", "link_type", "target_uri")


def write_links(root: BusRoot, key: str, targets: Targets) -> int:
    """Writes the artifact anew and returns how many links it holds."""
    drop_links(root, key)
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
    tenant, uri = record.get("tenant_id"), record["provenance"].get("source_uri")
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
