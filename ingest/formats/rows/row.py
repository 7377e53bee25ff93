"""Recognises rows, and reads one row as a document: its text, its name and its other fields."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import sha256_hex
from chunksink.chunkbus.chunk import Record
from chunksink.ingest.errors import RecordRefused
from chunksink.ingest.formats.markdown.document import Structure
from chunksink.ingest.formats.markdown.normalise import MAX_REPEATED
from chunksink.ingest.model import Source
from chunksink.ingest.record_documents import Origin
from chunksink.ingest.record_fields import tenant_of, without_vectors

Names = Mapping[str, tuple[str, ...]]
"""The possible field names of each role. The first one with a value counts."""

NAMES: Names = {
    "text": ("text", "content", "contents", "body", "markdown", "html", "article", "passage", "abstract"),
    "html": ("html",),  # those of the text that are read as HTML
    "id": ("id", "_id", "doc_id", "docid", "docno", "uuid", "guid"),
    "title": ("title", "headline", "subject", "name"),
    "address": ("html_url", "web_url", "url", "link", "uri", "permalink", "source_uri", "file_path", "path"),
}

_TAGS = ("tags", "labels", "categories", "category", "keywords")
DATES = ("date", "published", "published_at", "created_at", "created", "timestamp", "updated_at", "update_date")
_OF_CHUNKS = {"chunk_id", "chunk_index", "schema_version"}
_MIN_VECTOR_LENGTH = 32
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_WEB = re.compile("https?://", re.IGNORECASE)
_PAGE = re.compile(r"(?!.*://).*\.(?:html|htm|xhtml)", re.IGNORECASE)
_SUFFIX = re.compile(r"[^/.]\.\w{1,10}\Z")


@dataclass(frozen=True)
class Row:
    """A row as a document. `other_texts` names further long fields that could be the text; these fields are dropped."""

    text: str
    is_html: bool
    title: str
    origin: Origin
    other_texts: list[str]


def is_row(record: Record, names: Names, *, is_alone: bool) -> bool:
    """Whether a record has a text, and an id, a title or an address. The text may be empty if there is a title. If the
    record is alone in its file, a title is not enough. If the text field was named, the text alone is enough."""
    has_title = any(map(_is_text, _values(record, names["title"])))
    texts = (text for text in _values(record, names["text"]) if isinstance(text, str | None))
    if not _OF_CHUNKS.isdisjoint(record) or not any(has_title or _is_text(text) for text in texts):
        return False
    if names["text"] != NAMES["text"] or _id_of(record, names["id"]) is not None:
        return True
    if not is_alone and has_title:
        return True
    return any(_SCHEME.match(one) or _SUFFIX.search(one) for one in _addresses(record, names["address"]))


def read_row(record: Record, names: Names, source: Source, position: str) -> Row:
    """Raises RecordRefused if the record has no text, or a tenant that is neither a string nor an integer."""
    for group in (record, record.get("metadata")):
        if isinstance(group, dict) and type(group.get("tenant_id")) is int:  # not a boolean
            group["tenant_id"] = str(group["tenant_id"])
    first = next(((holder, key) for holder, key in _find(record, names["text"]) if holder[key]), None)
    if first and isinstance(parts := first[0][first[1]], list) and (joined := _joined(parts)) is not None:
        first[0][first[1]] = joined
    holder, key = _find_text(record, names["text"])
    is_html = (holder, key) in _find(record, names["html"])
    text = holder.pop(key) or ""
    other_texts = []
    for other, name in list(_find(record, (*names["text"], *NAMES["text"]))):
        if isinstance(value := other.get(name), str) and len(value) > MAX_REPEATED:
            other_texts.append(name)
            del other[name]
    id_ = _id_of(record, names["id"])
    others = without_vectors(record).items()
    fields = {name: value for name, value in others if name != "tenant_id" and not _is_vector(value)}
    inner = fields.pop("metadata", None) or {}
    inner = inner if isinstance(inner, dict) else {"metadata": inner}
    titles = (value for name in names["title"] for one in (record, inner) for value in _values(one, [name]))
    address = next((one for part in (record, inner) for one in _addresses(part, names["address"])), None)
    is_html = is_html or _PAGE.fullmatch(address or "") is not None
    metadata = _merged(inner, fields)
    title = next(filter(_is_text, titles), "")
    if title:
        metadata["title"] = title = unescape(title) if is_html else title
    name = _name(source.uri, id_, address, position)
    about = {"source_uri": address or name, "source_type": "rows"}
    if address is None or (id_ is not None and _WEB.match(address)):
        about["path"] = source.uri
    if id_ is not None:  # sinks find sources by `filename`
        about |= {"filename": id_, "extension": PurePosixPath(source.uri).suffix.removeprefix(".").lower()}
    origin = Origin(
        name=name,
        address=address or name,
        checksum=f"sha256:{sha256_hex(text.encode())}",
        tenant=tenant_of(record) or source.tenant,
        source=about,
        metadata=metadata,
    )
    return Row(text, is_html, title, origin, other_texts)


def row_metadata(document: Structure, fields: Record) -> Record:
    """The front matter of the text, overridden by the fields of the row, under the names that sinks use."""
    about: Record = dict(document.metadata)
    if tags := next(filter(_has_value, _values(fields, _TAGS)), None):
        is_list = isinstance(tags, list)
        about["tags"] = [tag.get("name") if isinstance(tag, dict) else tag for tag in tags] if is_list else tags
    dates = (value for value in _values(fields, DATES) if isinstance(value, str) and re.match(r"\d{4}(?!\d)", value))
    if date := next(dates, None):
        about["date"] = date
    return _merged(about, fields)


def _name(uri: str, id_: str | None, address: str | None, position: str) -> str:
    """The name from the row's id, else its web address, its path or its position."""
    if id_ is not None or address is None:
        return f"{uri}#{position}" if id_ is None else f"{uri}#id={quote(id_, safe='')}"
    is_name = _SCHEME.match(address) is not None and "#" not in address
    return address if is_name else f"{uri}#address={quote(address, safe='')}"


def _find(record: Record, names: Iterable[str]) -> Iterator[tuple[Record, str]]:
    """The fields with one of these names. A top-level field matches in upper or lower case; any other name is a dotted
    path, spelled exactly."""
    spellings = {name.lower(): name for name in reversed(record)}
    for name in names:
        *outer, last = [spellings[name.lower()]] if name.lower() in spellings else name.split(".")
        holder: Any = record
        for key in outer:
            holder = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and last in holder:
            yield holder, last


def _values(record: Record, names: Iterable[str]) -> Iterator[Any]:
    return (holder[key] for holder, key in _find(record, names))


def _joined(parts: list[Any]) -> str | None:
    """The text of a message in parts: objects with a `text`, between which exports of Telegram have strings; None if it
    is another list."""
    every = [part.get("text") if isinstance(part, dict) else part for part in parts]
    texts = [text for text in every if isinstance(text, str)]
    between = "" if any(isinstance(part, str) for part in parts) else "\n\n"
    return between.join(texts) if texts == every != parts else None


def _find_text(record: Record, names: tuple[str, ...]) -> tuple[Record, str]:
    """The first field with a text, else the first empty one."""
    found = [(holder, key) for holder, key in _find(record, names) if isinstance(holder[key], str | None)]
    if not found:
        shown = ", ".join(sorted(record, key=lambda name: not isinstance(record[name], str)))
        reason = f"has no text: none of {', '.join(names)} is a string; its fields are {shown:.300}"
        raise RecordRefused(findings.FIELD_MISSING, f"{reason}. Ingest this file alone with --field text=NAME")
    return next(((holder, key) for holder, key in found if _is_text(holder[key])), found[0])


def _id_of(record: Record, names: Iterable[str]) -> str | None:
    """The id; also from MongoDB's `{"$oid": ...}`, and from whole numbers stored as floats."""
    for value in _values(record, names):
        value = value.get("$oid") if isinstance(value, dict) else value
        value = int(value) if isinstance(value, float) and value.is_integer() else value
        if isinstance(value, str | int) and str(value).strip():
            return str(value).strip()
    return None


def _addresses(record: Record, names: Iterable[str]) -> Iterator[str]:
    """Addresses, without `n/a` and link labels."""
    for value in _values(record, names):
        address = value.strip() if isinstance(value, str) else ""
        is_label = address.lower() == "n/a" or re.search(r"\s", address)
        if not is_label and re.search("[/.:]", address) and re.search(r"\w", address):
            yield address


def _merged(below: Record, above: Record) -> Record:
    """Merges both; the values of `above` win unless they are empty."""
    return below | {name: value for name, value in above.items() if name not in below or _has_value(value)}


def _has_value(value: Any) -> bool:
    return bool(value.strip()) if isinstance(value, str) else value is not None and value not in ([], {})


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and _has_value(value)


def _is_vector(value: Any) -> bool:
    is_long = isinstance(value, list) and len(value) >= _MIN_VECTOR_LENGTH
    return is_long and all(type(number) in (int, float) for number in value)
