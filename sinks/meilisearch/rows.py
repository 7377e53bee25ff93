"""Documents in Meilisearch's format, and filters and queries in its syntax."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import orjson

from chunksink.sinks.contract import Stored
from chunksink.sinks.document import NAMES, Document, Vectors
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.reader import WILDCARDS, Filter, Value, prefix_of
from chunksink.sinks.values import FACET_BYTES, LONE_SURROGATE, cut

VECTORS = "_vectors"
HASHES = ("id", "parent_id", "document_hash", "text_hash")
_KEYS = NAMES | {VECTORS}
_ID = re.compile("[A-Za-z0-9_-]{1,511}")
_UNSEEN = "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
_BEFORE_WORDS = re.compile(rf'(^|[\s"(])[-+^~|=*\u2010-\u2015\u2212{_UNSEEN}]+')

MAX_POSITIONS = 65_535
"""The positions of a field, of which a word takes one. Meilisearch silently ignores words after the last position."""
_HARD = 8
"""Positions that a hard separator takes."""
# Letters of scripts with spaces between words. A change of script ends a word.
_RUNS = (
    "0-9A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff",
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u0386\u0388-\u03f5\u03f7-\u03ff\u1f00-\u1fbc",
    "\u0400-\u0481\u048a-\u052f",
)
_ENDS, _SOFT = ".,!?;\u2026", "_:'\"()\\[\\]/-"
_WORD = re.compile("|".join(rf"[{run}][{run}\u0300-\u036f]*" for run in _RUNS))
_END = re.compile(rf"[{_ENDS}][\s{_ENDS}{_SOFT}]*")
_OTHER = re.compile(rf"[^\s{''.join(_RUNS)}{_ENDS}{_SOFT}]")


def positions(text: str) -> int:
    """An upper bound for the positions that a text takes in Meilisearch.

    Chinese, Thai and similar scripts are split with dictionaries, so each letter counts as a word here. Other unknown
    characters count as hard separators.
    """
    camels = sum(1 for one, next in pairwise(text) if next.isupper() and one.islower())  # camelCase is two words
    words = sum(1 for _ in _WORD.finditer(text))
    ends = sum(_HARD - 1 for _ in _END.finditer(text))
    return camels + words + ends + sum(map(_positions_of, _OTHER.findall(text)))


def _positions_of(character: str) -> int:
    return 1 if character.isalnum() or unicodedata.category(character).startswith("M") else _HARD


def line(document: Document, vector: Vectors | None, embedder: str | None) -> bytes:
    """One document as a line of NDJSON. In an index with an embedder it always has the vector field: without that field
    Meilisearch keeps the old vector."""
    fields = document.as_dict()
    if embedder is not None:
        embeddings = None if vector is None else np.ascontiguousarray(vector)
        fields[VECTORS] = {embedder: {"embeddings": embeddings, "regenerate": False}}
    return orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


def refusal_reason(document: Document) -> str | None:
    """Why a document must be refused: Meilisearch would search only a part of it. None if it searches all."""
    if len(document.text) > MAX_POSITIONS // _HARD and positions(document.text) > MAX_POSITIONS:
        return (
            f"its text may take {positions(document.text):,} positions, and Meilisearch searches only the first "
            f"{MAX_POSITIONS:,}: split it into smaller chunks"
        )
    return None


def stored(fields: Mapping[str, Any], embedder: str | None, content: bool) -> Stored:
    """A document with an unknown field counts as not ours, so that replacing its family removes the field."""
    document = Document.if_ours(fields) if content and fields.keys() <= _KEYS else None
    return Stored.of_fields(str(fields.get("id", "")), fields, document, _vector(fields, embedder))


def _vector(fields: Mapping[str, Any], embedder: str | None) -> Vectors | None:
    """None also for several vectors: only other programs store several, and Meilisearch searches each."""
    try:
        (only,) = fields[VECTORS][embedder]["embeddings"]
        return np.asarray(only, dtype=np.float32)
    except (KeyError, ValueError, TypeError):
        return None


def quoted(value: str) -> str:
    """A string literal in a filter."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def listed(values: Iterable[str]) -> str:
    return f"[{', '.join(map(quoted, values))}]"


def conditions(filters: Sequence[Filter]) -> list[str]:
    """The filters in Meilisearch's syntax; all of them must pass."""
    conditions: list[str] = []
    for condition in filters:
        if condition.any_of is not None:
            conditions.append(f"{condition.field} IN [{', '.join(map(_literal, condition.any_of))}]")
        if condition.like is not None:
            begins = [_begins(condition.field, pattern) for pattern in condition.like]
            conditions.append(" OR ".join(begins) or f"{condition.field} IN []")
        if condition.at_least is not None:
            conditions.append(f"{condition.field} >= {condition.at_least}")
        if condition.at_most is not None:
            conditions.append(f"{condition.field} <= {condition.at_most}")
    return conditions


def _begins(field: str, pattern: str) -> str:
    if not WILDCARDS.search(pattern):
        return f"{field} = {quoted(pattern)}"
    prefix = prefix_of(pattern)
    if prefix is None:
        raise InvalidFilter(
            f"Meilisearch cannot filter {field} by the pattern {pattern!r:.100}, only by a beginning such as docs/*"
        )
    return f"{field} STARTS WITH {quoted(prefix)}" if prefix else f"{field} EXISTS"


def _literal(value: Value) -> str:
    return quoted(_as_stored(value)) if isinstance(value, str) else str(value).lower()


def _as_stored(value: str) -> str:
    """A value of a filter, cut as Meilisearch cuts the values that it stores: it does not cut those of filters."""
    if len(cut(value)) == len(value):
        return value
    folded = unicodedata.normalize("NFKD", value).lower().encode()
    return folded[:FACET_BYTES].decode(errors="ignore")


def sendable(typed: str) -> str:
    """A query without lone surrogates and without symbols before words: a minus would exclude the word, and other
    symbols would become words. Quotes around a phrase stay."""
    return _BEFORE_WORDS.sub(r"\1", LONE_SURROGATE.sub(" ", typed))


def is_searchable(query: str) -> bool:
    """Whether there is something to search for. Mere punctuation is an empty query, which finds everything."""
    return any(character.isalnum() or unicodedata.category(character) == "So" for character in query)


def passes_exactly(fields: Mapping[str, Any], filters: Sequence[Filter]) -> bool:
    """Whether the strings of a hit pass the filters if case matters. Meilisearch has applied the filters, but ignores
    case. So all other values, and missing ones, pass here."""
    for one in filters:
        value = fields.get("fields", {}).get(one.custom) if one.custom else fields.get(one.field)
        members = value if isinstance(value, list) else [value]
        if not any(not isinstance(member, str) or one.accepts(member) for member in members):
            return False
    return True


def valid_ids(ids: Sequence[str]) -> list[str]:
    """The distinct valid ids: Meilisearch refuses a request with an invalid one."""
    return [id for id in dict.fromkeys(ids) if _ID.fullmatch(id)]
