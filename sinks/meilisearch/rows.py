"""Documents as Meilisearch takes them and gives them back, and its filters."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import orjson

from chunksink.sinks.contract import NO_PARENT, Stored
from chunksink.sinks.document import NAMES, Document, Vectors, hashes_of_content
from chunksink.sinks.reader import Filter, Value
from chunksink.sinks.values import HALF

VECTORS = "_vectors"
HASHES = ("id", "parent_id", "document_hash", "text_hash")
_KEYS = NAMES | {VECTORS}
_ID = re.compile("[A-Za-z0-9_-]{1,511}")
_UNSEEN = "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
_BEFORE_WORDS = re.compile(rf'(^|[\s"(])[-+^~|=*\u2010-\u2015\u2212{_UNSEEN}]+')

MOST_POSITIONS = 65_535
"""Of one field; what comes after them cannot be found, and Meilisearch does not say so."""
_HARD = 8
"""Positions that a word takes after a hard separator."""
# Letters of scripts that put spaces between words; where the script changes, so does the word.
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
    """At most so many positions of Meilisearch does the text take; often fewer.

    Dictionaries cut Chinese, Thai and their like, so each letter of them counts as a word. A sign that is not known
    better counts as a hard separator.
    """
    camels = sum(1 for one, next in pairwise(text) if next.isupper() and one.islower())  # camelCase is two words
    words = sum(1 for _ in _WORD.finditer(text))
    ends = sum(_HARD - 1 for _ in _END.finditer(text))
    return camels + words + ends + sum(_of_sign(sign) for sign in _OTHER.findall(text))


def _of_sign(sign: str) -> int:
    return 1 if sign.isalnum() or unicodedata.category(sign).startswith("M") else _HARD


def line(document: Document, vector: Vectors | None, embedder: str | None) -> bytes:
    """One document as a line of NDJSON. The vector is always named: an omitted one would keep the old one alive."""
    fields = document.fields()
    if embedder is not None:
        held = None if vector is None else np.ascontiguousarray(vector)
        fields[VECTORS] = {embedder: {"embeddings": held, "regenerate": False}}
    return orjson.dumps(fields, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


def flaw(document: Document) -> str | None:
    """Why Meilisearch would find only a part of it."""
    if len(document.text) > MOST_POSITIONS // 4 and positions(document.text) > MOST_POSITIONS:
        return (
            f"its text may take {positions(document.text):,} positions, and Meilisearch finds words in the first "
            f"{MOST_POSITIONS:,} only: split it into smaller chunks"
        )
    return None


def stored(held: Mapping[str, Any], embedder: str | None, content: bool) -> Stored:
    """What somebody else has put a field into was not written by us: to replace its family takes the field away."""
    document = Document.if_ours(held) if content and held.keys() <= _KEYS else None
    hashes = {name: _string(held.get(name)) for name in HASHES[1:]}
    if document is not None:
        hashes["document_hash"], hashes["text_hash"] = hashes_of_content(document)
    return Stored(id=str(held.get("id", "")), **hashes, document=document, vector=_vector(held, embedder))


def _string(value: Any) -> str:
    return value if isinstance(value, str) else NO_PARENT


def _vector(held: Mapping[str, Any], embedder: str | None) -> Vectors | None:
    """None also where there are several, as only somebody else stores them: each is searched."""
    try:
        (only,) = held[VECTORS][embedder]["embeddings"]
        return np.asarray(only, dtype=np.float32)
    except (KeyError, ValueError, TypeError):
        return None


def quoted(value: str) -> str:
    """A string inside a filter; nothing in it is syntax."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def listed(values: Iterable[str]) -> str:
    return f"[{', '.join(map(quoted, values))}]"


def conditions(filters: Sequence[Filter]) -> list[str]:
    """The filters as Meilisearch's, all of which must hold."""
    found: list[str] = []
    for condition in filters:
        if condition.any_of is not None:
            found.append(f"{condition.field} IN [{', '.join(map(_literal, condition.any_of))}]")
        if condition.at_least is not None:
            found.append(f"{condition.field} >= {condition.at_least}")
        if condition.at_most is not None:
            found.append(f"{condition.field} <= {condition.at_most}")
    return found


def _literal(value: Value) -> str:
    return quoted(value) if isinstance(value, str) else str(value).lower()


def sendable(typed: str) -> str:
    """A query without what JSON cannot hold, and without signs before a word: a minus would turn the search round, and
    others would make a word of their own of it. Quotes around a phrase stay."""
    return _BEFORE_WORDS.sub(r"\1", HALF.sub(" ", typed))


def is_searchable(query: str) -> bool:
    """Whether there is something to look for. For Meilisearch mere punctuation is no query, which finds everything."""
    return any(sign.isalnum() or unicodedata.category(sign) in ("So", "Sc") for sign in query)


def meets(held: Mapping[str, Any], filters: Sequence[Filter]) -> bool:
    """Whether what Meilisearch found has values as they were asked for: it folds case, no other engine does. A field
    that is not shown is taken as it says."""
    return all(_meets(held[one.field], one.any_of) for one in filters if one.any_of is not None and one.field in held)


def _meets(value: Any, any_of: Sequence[Value]) -> bool:
    members = value if isinstance(value, list) else [value]
    return any(not isinstance(member, str) or member in any_of for member in members)


def possible(ids: Sequence[str]) -> list[str]:
    """Those of the ids, each once, that Meilisearch can have: for another one it would refuse them all."""
    return [id for id in dict.fromkeys(ids) if _ID.fullmatch(id)]
