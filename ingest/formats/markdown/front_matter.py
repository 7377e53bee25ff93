"""Front matter at the top of a text: YAML between `---` and `---` or `...`, TOML between `+++` and `+++`.

A `---` can also be a rule above prose. It begins front matter only if every line fits a YAML mapping and one has a key.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from typing import Any

from chunksink.chunkbus.canonical import canonical_text
from chunksink.ingest.formats.markdown.normalise import MAX_REPEATED, one_line

_FIELDS = dict.fromkeys(("tags", "tag", "keywords"), "tags") | dict.fromkeys(("authors", "author"), "authors")
_FIELDS |= {"title": "title", "language": "language", "lang": "language", "date": "date"}
_LISTS = ("tags", "authors")
_RESERVED_NAMES = """
    chunk_count chunk_id doc_id document_id id neighbors parent_id stable_id text
    anchor author authors char_end char_start chunk_index chunk_path code_language content_truncated
    content_type creator date document_title end_offset extension fields file_name file_path file_size
    file_type filename folder heading_path headings headings_path index keywords kind lang language
    last_modified links metadata mime_type modified modified_at modified_at_epoch ordinal overlap_chars
    page_end page_number page_start path publication_date publication_year published published_at section
    sheet_name size_bytes slide_number source source_folder source_type source_uri speaker start_offset
    table_header tags tenant_id timestamp_end timestamp_start title token_count topics year
"""
RESERVED = frozenset(_RESERVED_NAMES.split())
"""Names that have a meaning in the metadata of a chunk. All other keys are custom: they keep their names."""
_NULLS = ("", "~", "null")
_MAX_ITEMS = 50
_MAX_ITEM = 200
_MAX_CUSTOM = 8000  # characters of custom keys and values, which every chunk repeats
_MAX_NUMBER = 2**53 - 1

# At most four words: in a sentence more words come before a colon.
_KEY = r"""(?:"[^"\n]*"|'[^'\n]*'|[^\W\d]\S*?(?:[ \t]\w\S*?){0,3})[ \t]*:"""
_YAML_BEGIN = re.compile(r"---[ \t]*\n")
_YAML_LINE = re.compile(
    r"(?:(?P<end>(?:---|\.\.\.)[ \t]*)"
    r"|(?P<nothing>[ \t]*(?:#.*)?)"
    r"|(?P<inside>[ \t].*|[\]}].*)"
    r"|(?P<item>-(?:[ \t].*)?)"
    rf"|(?P<group>{_KEY}[ \t]*(?:#.*)?)"
    rf"|(?P<scalar>{_KEY}[ \t].*)"
    r")(?:\n|\Z)"
)
# What may follow a key: items only where it has no value on its line.
_BELOW = {"": (), "group": ("inside", "item"), "scalar": ("inside",)}
# A top-level key with its whole value, whose items need not be indented.
_YAML_ENTRY = re.compile(
    r"^([\"']?)(\w[\w.-]*(?: \w[\w.-]*){0,3})\1[ \t]*:(?=[ \t]|$)"
    r"(.*(?:\n(?:[ \t].*|-(?:[ \t].*)?|[\]}].*|[ \t]*)$)*)",
    re.MULTILINE,
)
# Parsing nested brackets or keys is quadratic.
_MAX_YAML = 4000
_TOML = re.compile(r"\+\+\+[ \t]*\n([\s\S]{0,16000}?)^\+\+\+[ \t]*(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True)
class FrontMatter:
    """The number of its lines, and the metadata taken from it."""

    lines: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)


def find_front_matter(text: str) -> FrontMatter:
    """The front matter of a text; 0 lines if it has none."""
    if block := text[: _yaml_length(text)]:
        last = {match[2]: match for match in _YAML_ENTRY.finditer(block)}
        custom = set(islice(filter(_is_custom, last), _MAX_ITEMS))
        read = {name: match for name, match in last.items() if name in custom or name.lower() in _FIELDS}
        entries = {name: _parse_yaml(match[0].rstrip(), match[3].strip()) for name, match in read.items()}
    elif (match := _TOML.match(text)) and (entries := _toml_entries(match[1])):
        block = match[0]
    else:
        return FrontMatter()
    return FrontMatter(block.removesuffix("\n").count("\n") + 1, _metadata(entries))


def _yaml_length(text: str) -> int:
    """The length of the YAML front matter; 0 if any line does not fit a mapping."""
    begin = _YAML_BEGIN.match(text)
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


def _parse_yaml(entry: str, value: str) -> Any:
    """The value, with scalars as text. Invalid YAML such as `title: Tea: a guide` is taken literally."""
    import yaml

    if len(entry) > _MAX_YAML:
        return None
    try:
        (parsed,) = yaml.load(entry, yaml.BaseLoader).values()
    except (yaml.YAMLError, RecursionError, ValueError, AttributeError):
        return None if value[:1] in tuple("&*![{|>") else re.split(r"\s#", value, maxsplit=1)[0]
    return parsed


def _toml_entries(text: str) -> dict[str, Any]:
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}
    taxonomies = table.get("taxonomies")
    return table | taxonomies if isinstance(taxonomies, dict) else table


def _metadata(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The first usable value of title, language and date. Lists of tags and of authors are joined from all of their
    keys (`tags`, `keywords`). Custom keys with single values or lists of strings follow."""
    single: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    for name, value in entries.items():
        key = _FIELDS.get(name.lower(), "")
        if key in _LISTS:
            lists[key] = list(dict.fromkeys([*lists.get(key, ()), *_items(key, value)]))[:_MAX_ITEMS]
        elif key and isinstance(value, str | date):
            line = one_line(canonical_text(str(value)))
            if line.lower() not in _NULLS and len(line) <= MAX_REPEATED:
                single.setdefault(key, line)
    found = {**single, **{key: items for key, items in lists.items() if items}}
    return found | _custom(entries)


def _is_custom(name: str) -> bool:
    return bool(name) and name.lower() not in RESERVED | _FIELDS.keys()


def _custom(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The custom keys with single values or lists of strings, up to a total length."""
    found: dict[str, Any] = {}
    room = _MAX_CUSTOM
    for name, value in entries.items():
        key, kept = one_line(canonical_text(name)), _custom_value(value)
        if not _is_custom(key) or kept in (None, []):
            continue
        room -= len(key) + len(str(kept))
        if room < 0 or len(found) == _MAX_ITEMS:
            break
        found[key] = kept
    return found


def _custom_value(value: Any) -> Any:
    if isinstance(value, list):
        return list(islice(_items("", value), _MAX_ITEMS))
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if abs(value) <= _MAX_NUMBER else None  # not NaN either
    line = one_line(canonical_text(str(value))) if isinstance(value, str | date) else ""
    return line if line.lower() not in _NULLS and len(line) <= MAX_REPEATED else None


def _items(key: str, value: Any) -> Iterator[str]:
    """The items of a list, whether strings or mappings with a `name`; tags may also be one comma-separated string."""
    if isinstance(value, str):
        value = value.split(",") if key == "tags" else [value]
    items: Iterable[Any] = value if isinstance(value, list) else ()
    for item in items:
        named = item.get("name") if isinstance(item, dict) else item
        line = one_line(canonical_text(named)) if isinstance(named, str) else ""
        line = line.removeprefix("#") if key == "tags" else line
        if line.lower() not in _NULLS and len(line) <= _MAX_ITEM:
            yield line
