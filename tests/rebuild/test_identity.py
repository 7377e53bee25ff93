"""Every identity that the contract accepts can be indexed, with odd names in each identifying field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from tests.chunkbus.samples import chunk, codes, line_of, lines_of, manifest, provenance, put, validate
from tests.support.home import Home
from tests.support.local_engines import chroma, fts, jsonl

NUL = {"nul": "x\0y", "nul alone": "\0", "nul at the end": "x\0"}
NAMES = {
    "replacement": "x\ufffdy",
    "controls": "\x01\x1b[31m\x7f\x85",
    "line break": "a\nb\r\nc",
    "composed": "caf\u00e9",
    "decomposed": "cafe\u0301",
    "blank": " ",
    "around": " a ",
    "plain": "a",
    "case": "A",
    "long": "n" * 10_000,
    "long and other": "n" * 9_999 + "m",
    "astral": "\U0001f600",
    "noncharacter": "\ufffe",
    "digits": "0" * 64,
}
NOT_NAMES: dict[str, Any] = {"number": 7, "boolean": True, "list": ["a"], "half": "\ud800"}


def named(path: str, value: Any, text: str) -> Record:
    """A chunk that differs only in the field `path`. It has a tenant of its own, so that cases do not collide."""
    record = chunk(text=text, chunk_id=f"id of {text}", document_id=f"version of {text}")
    if "tenant" not in path:
        record["tenant_id"] = path
    record["provenance"] = provenance(source_uri=f"docs/{text}.md")
    if path == "provenance.source_ref":
        del record["provenance"]["source_uri"]
    *parents, name = path.split(".")
    group = record
    for parent in parents:
        group = group.setdefault(parent, {})
    group[name] = value
    return record


PATHS = (
    "chunk_id",
    "document_id",
    "parent_id",
    "tenant_id",
    "metadata.parent_id",
    "metadata.tenant_id",
    "provenance.source_uri",
    "provenance.source_ref",
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("value", [*NUL.values(), *NOT_NAMES.values()], ids=[*NUL, *NOT_NAMES])
def test_invalid_name_is_refused(path: str, value: Any, tmp_path: Path) -> None:
    line = line_of(named(path, "HERE", "t")).replace(b'"HERE"', json.dumps(value).encode())
    [code] = codes(validate(put(FolderRoot(tmp_path), "p", line + b"\n")))
    assert code == (findings.ENCODING if isinstance(value, str) else findings.WRONG_TYPE)


@pytest.mark.promise(1)
def test_accepted_name_can_be_indexed_and_verified(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), fts, jsonl, chroma)
    cases = [(path, name) for path in PATHS for name in NAMES]
    lines = lines_of(named(path, NAMES[name], f"{path} {name}") for path, name in cases)
    counts = {"documents": len(cases), "chunks_emitted": len(cases), "failures": 0}
    put(home.root, "p", lines, manifest("p", lines, counts=counts))
    assert codes(validate(home.root)) == []
    home.rebuild()
    assert home.verify(deep=True).ok
    for held in home.contents().values():
        assert sorted(document.text for document in held) == sorted(f"{path} {name}" for path, name in cases)
    assert home.sync().chunks_written == 0
