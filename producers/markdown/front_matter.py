"""YAML front matter, which CommonMark would read as a rule and a heading. Only plain `key: value` lines are used."""

import re

_BLOCK = re.compile(r"---[ \t]*\n(?=[A-Za-z_][\w-]*[ \t]*:)((?:.*\n){1,400}?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_SCALAR = re.compile(r"^([A-Za-z_][\w-]*)[ \t]*:[ \t]+(?![|>&*!\[{#])(.+?)[ \t]*$", re.MULTILINE)
_KNOWN = {"title": "title", "author": "author", "language": "language", "lang": "language", "date": "date"}


def front_matter_length(text: str) -> int:
    """Characters that the front matter takes at the head of a text; 0 without one."""
    match = _BLOCK.match(text)
    return match.end() if match else 0


def read_front_matter(block: str) -> dict[str, str]:
    """The document's own statements about itself that a search can use."""
    found: dict[str, str] = {}
    for match in _SCALAR.finditer(block):
        field = _KNOWN.get(match[1].lower())
        value = match[2]
        if value[0] in "\"'" and value[-1] == value[0] and len(value) > 1:
            value = value[1:-1]
        if field and value:
            found.setdefault(field, value)
    return found
