"""Tags and authors in front matter, which may be several: `[a, b]`, items below the key, or words with commas."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from chunksink.chunkbus.canonical import canonical_text

_FIELDS = {"tags": "tags", "tag": "tags", "keywords": "tags", "authors": "authors", "author": "authors"}
_NULLS = ("", "~", "null")
_MOST_ITEMS = 50
_MOST_CHARACTERS = 200
# Parsing nested brackets takes the square of what is parsed, so that is bounded.
_MOST_PARSED = 4000
# A key at the top with all that belongs to it: items may stand at the margin.
_YAML_ENTRY = re.compile(
    rf"^([\"']?)({'|'.join(_FIELDS)})\1[ \t]*:.*(?:\n(?:[ \t].*|-(?:[ \t].*)?|[\]}}].*|[ \t]*)$)*",
    re.IGNORECASE | re.MULTILINE,
)

Lists = dict[str, tuple[str, ...]]


def lists_in_yaml(block: str) -> Lists:
    said: dict[str, Any] = {}
    for match in _YAML_ENTRY.finditer(block):
        said.setdefault(match[2].lower(), _parsed(match[0]))
    return lists_in(said)


def lists_in(said: Mapping[str, Any]) -> Lists:
    """Of a mapping, whose values may be anything. What is said of one field under several keys is added."""
    found: dict[str, dict[str, None]] = {}
    for name, value in said.items():
        field = _FIELDS.get(name.lower())
        if field is not None:
            found.setdefault(field, {}).update(dict.fromkeys(_items(field, value)))
    return {field: tuple(items)[:_MOST_ITEMS] for field, items in found.items() if items}


def _parsed(entry: str) -> Any:
    """Every scalar as text, as it is written; None of what is no YAML."""
    if len(entry) > _MOST_PARSED:
        return None
    try:
        (value,) = yaml.load(entry, yaml.BaseLoader).values()
    except (yaml.YAMLError, RecursionError, ValueError, AttributeError):
        return None
    return value


def _items(field: str, value: Any) -> Iterable[str]:
    if isinstance(value, str):
        value = value.split(",") if field == "tags" else [value]
    for item in value if isinstance(value, list) else ():
        named = item.get("name") if isinstance(item, dict) else item
        line = " ".join(canonical_text(named).split()) if isinstance(named, str) else ""
        line = line.removeprefix("#") if field == "tags" else line
        if line.lower() not in _NULLS and len(line) <= _MOST_CHARACTERS:
            yield line
