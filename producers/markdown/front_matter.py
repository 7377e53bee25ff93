"""Front matter at the head of a text: YAML between `---` and `---` or `...`, TOML between `+++` and `+++`.

CommonMark would read it as a rule and a heading. What tells it from a rule above prose are its lines: all of them are
such as a YAML mapping has, and one at least has a key; TOML has to parse. Of YAML what stands at the top is read.
"""

import re
import tomllib
from datetime import date
from typing import Any

import orjson

from chunksink.chunkbus.canonical import canonical_text
from chunksink.producers.markdown.front_lists import Lists, lists_in, lists_in_yaml
from chunksink.producers.markdown.headings import MAX_CARRIED

_KNOWN = {"title": "title", "author": "author", "language": "language", "lang": "language", "date": "date"}

# A plain key has at most four words: what a sentence has before a colon is mostly longer.
_KEY = r"""(?:"[^"\n]*"|'[^'\n]*'|[^\W\d]\S*?(?:[ \t]\w\S*?){0,3})[ \t]*:"""
_YAML_BEGINS = re.compile(r"---[ \t]*\n")
_YAML_LINE = re.compile(
    r"(?:(?P<end>(?:---|\.\.\.)[ \t]*)"
    r"|(?P<nothing>[ \t]*(?:#.*)?)"
    r"|(?P<inside>[ \t].*|[\]}].*)"
    r"|(?P<item>-(?:[ \t].*)?)"
    rf"|(?P<group>{_KEY}[ \t]*(?:#.*)?)"
    rf"|(?P<scalar>{_KEY}[ \t].*)"
    r")(?:\n|\Z)"
)
# What may stand below a key: items only where it has no value on its line.
_BELOW = {"": (), "group": ("inside", "item"), "scalar": ("inside",)}
# A value with the blank and indented lines below it.
_YAML_SCALAR = re.compile(
    rf"^([\"']?)({'|'.join(_KNOWN)})\1[ \t]*:[ \t]+(?!#)(\S.*(?:\n(?:[ \t].*)?$)*)", re.IGNORECASE | re.MULTILINE
)
_NULLS = ("~", "null")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*")|'((?:[^']|'')*)'""", re.DOTALL)
# Parsing takes the square of what is parsed, so that is bounded.
_TOML = re.compile(r"\+\+\+[ \t]*\n([\s\S]{0,16000}?)^\+\+\+[ \t]*(?:\n|\Z)", re.MULTILINE)


def find_front_matter(text: str) -> tuple[int, dict[str, str], Lists]:
    """The characters that it takes at the head of a text, and what a search can use of what it says."""
    length = _yaml_length(text)
    if length:
        block = text[:length]
        return length, _known(_read_yaml(block)), lists_in_yaml(block)
    match = _TOML.match(text)
    table = _parse_toml(match[1]) if match else {}
    if match is None or not table:
        return 0, {}, {}
    taxonomies = table.get("taxonomies")
    return match.end(), _known(table), lists_in(table | (taxonomies if isinstance(taxonomies, dict) else {}))


def _yaml_length(text: str) -> int:
    """0 as soon as a line is none of a mapping."""
    begin = _YAML_BEGINS.match(text)
    at = begin.end() if begin else len(text)
    key = ""
    while at < len(text) and (line := _YAML_LINE.match(text, at)):
        at, kind = line.end(), line.lastgroup
        if kind == "end":
            return at if key else 0
        if kind in ("group", "scalar"):
            key = kind
        elif kind != "nothing" and kind not in _BELOW[key]:
            return 0
    return 0


def _read_yaml(block: str) -> dict[str, str | None]:
    return {match[2]: _yaml_value(match[3]) for match in _YAML_SCALAR.finditer(block)}


def _yaml_value(value: str) -> str | None:
    """None of what is no scalar, or a reference to one."""
    if value[0] in "|>":
        return value.partition("\n")[2]
    if quoted := _QUOTED.match(value):
        double, single = quoted.groups()
        return single.replace("''", "'") if double is None else _unescaped(" ".join(double.split()))
    plain = re.split(r"\s#", value, maxsplit=1)[0]
    return None if plain[0] in "&*![{" or plain.strip().lower() in _NULLS else plain


def _unescaped(quoted: str) -> str:
    try:
        value: str = orjson.loads(quoted)
    except orjson.JSONDecodeError:  # YAML has more escapes than JSON, which nobody uses
        return quoted[1:-1]
    return value


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # also for a number that is too long
        return {}


def _known(said: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in said.items():
        field = _KNOWN.get(name.lower())
        line = " ".join(canonical_text(str(value)).split()) if isinstance(value, str | date) else ""
        if field and 0 < len(line) <= MAX_CARRIED:
            found.setdefault(field, line)
    return found
