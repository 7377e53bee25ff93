"""Writes files of results with one value per line, so that a diff between two commits is readable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson


def write_results(file: Path, results: Mapping[str, Any]) -> None:
    """JSON with one line for each value. The last value, a list or a table, has a line for each entry."""
    *others, last = results
    entries = results[last]
    lines = _named(entries) if isinstance(entries, dict) else [orjson.dumps(entry) for entry in entries]
    start, end = (b"{", b"}") if isinstance(entries, dict) else (b"[", b"]")
    head = [line + b"," for line in _named({name: results[name] for name in others})]
    body = [orjson.dumps(last) + b": " + start, b",\n".join(lines), end]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"\n".join([b"{", *head, *body, b"}", b""]))


def _named(values: Mapping[str, Any]) -> list[bytes]:
    return [orjson.dumps(name) + b": " + orjson.dumps(value) for name, value in values.items()]
