"""The link artifact of a partition: `links/<key>.jsonl` below the bus root, one link a line.

Made from the partition's chunks alone, so it can be made again at any time, and carried-over families keep their
links. A target is resolved where the partition holds a document of that name.
"""

import os
import secrets
from pathlib import Path
from sqlite3 import Connection

import orjson

from chunkbus.layout import BusRoot, check_partition_key
from chunkbus.reader import read_partition


def links_file(root: BusRoot, key: str) -> Path:
    return root.path / "links" / f"{check_partition_key(key)}.jsonl"


def write_links(root: BusRoot, key: str, tables: Connection) -> int:
    """Writes the artifact anew and returns how many links it holds."""
    _note_documents(root, key, tables)
    path = links_file(root, key)
    path.parent.mkdir(exist_ok=True)
    new = path.with_name(f".{key}.{secrets.token_hex(8)}.new")
    count = 0
    try:
        with new.open("xb") as file:
            for _, record in read_partition(root, key):
                for link in (record.get("metadata") or {}).get("links") or ():
                    target = link.get("target_uri")
                    tenant = record.get("tenant_id")
                    line = {
                        "source_document_id": record["document_id"],
                        "source_uri": record["provenance"].get("source_uri"),
                        "chunk_id": record["chunk_id"],
                        "tenant_id": tenant,
                        "url": link["url"],
                        "link_type": link["link_type"],
                        "target_uri": target,
                        "target_document_id": _document(tables, tenant, target) if target else None,
                    }
                    file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
                    count += 1
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    return count


def _note_documents(root: BusRoot, key: str, tables: Connection) -> None:
    tables.execute("delete from documents")
    last: tuple[bytes, str] | None = None
    for _, record in read_partition(root, key):
        uri = record["provenance"].get("source_uri")
        if uri and (row := (orjson.dumps([record.get("tenant_id"), uri]), record["document_id"])) != last:
            tables.execute("insert or replace into documents values (?, ?)", row)
            last = row


def _document(tables: Connection, tenant: str | None, uri: str) -> str | None:
    name = orjson.dumps([tenant, uri])
    row = tables.execute("select document from documents where name = ?", [name]).fetchone()
    return None if row is None else str(row[0])
