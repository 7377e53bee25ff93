"""The record of documents that sources no longer contain takes linear time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path

import orjson
import pytest
from sqlite_utils import Database

from chunksink.chunkbus.canonical import text_hash
from chunksink.chunkbus.identity import family_key
from chunksink.chunkbus.store import write_transaction
from chunksink.rebuild.catalog_rows import drop_former_texts, update_chunks
from chunksink.rebuild.state import State
from tests.support.home import counted_steps

Row = tuple[str, str, str]  # family, document, text


def take_in(db: Database, partition: str, rows: Iterable[Row]) -> None:
    with write_transaction(db):
        update_chunks(db, partition, BytesIO(b"".join(line(*row) for row in rows)))


def line(parent_id: str, document_id: str, text: str) -> bytes:
    fields = {"parent_id": parent_id, "document_id": document_id, "chunk_id": f"{document_id} {text}", "text": text}
    return orjson.dumps({**fields, "provenance": {"inputs": []}}) + b"\n"


def texts(db: Database, parent_id: str) -> set[str]:
    rows = db.execute("select text_hash from former_text where family = ?", [family_key(parent_id, None)])
    return {text for (text,) in rows}


def documents(db: Database, parent_id: str) -> set[str]:
    rows = db.execute("select document_id from former_document where family = ?", [family_key(parent_id, None)])
    return {document for (document,) in rows}


def hashes(*texts: str) -> set[str]:
    return set(map(text_hash, texts))


def test_former_documents_of_a_family_are_recorded(tmp_path: Path) -> None:
    with State(tmp_path) as state:
        db = state.db
        take_in(db, "p1", [("a", "a@1", "one"), ("a", "a@1", "two"), ("b", "b@1", "one")])
        assert (texts(db, "a"), documents(db, "a")) == (set(), set())
        take_in(db, "p1", [("a", "a@2", "two"), ("a", "a@2", "three")])
        assert (texts(db, "a"), documents(db, "a")) == (hashes("one"), {"a@1"})
        assert (texts(db, "b"), documents(db, "b")) == (hashes("one"), {"b@1"})
        drop_former_texts(db)
        assert (texts(db, "a"), documents(db, "a")) == (set(), {"a@1"})


@pytest.mark.parametrize("order", [("p1", "p2"), ("p2", "p1")])
def test_moved_documents_are_not_recorded_as_removed(order: Sequence[str], tmp_path: Path) -> None:
    rows = [("a", "a@1", "one"), ("a", "a@1", "two")]
    moved: dict[str, list[Row]] = {"p1": [], "p2": rows}
    with State(tmp_path) as state:
        take_in(state.db, "p1", rows)
        for key in order:
            take_in(state.db, key, moved[key])
        assert texts(state.db, "a") == set()


@pytest.mark.parametrize("changed", [False, True])
def test_source_of_many_chunks_takes_linear_time(changed: bool, tmp_path: Path) -> None:
    def steps(chunks: int) -> int:
        with State(tmp_path / str(chunks)) as state:
            take_in(state.db, "p1", [("a", "a@1", f"text {number}") for number in range(chunks)])
            version = "new text" if changed else "text"
            with counted_steps(state.db) as counted:
                take_in(state.db, "p1", [("a", "a@1", f"{version} {number}") for number in range(chunks)])
        return counted[0]

    assert steps(4_000) < 3 * steps(2_000)
