"""A flat record as the document that it is: its text, who it is, and all that it says beside.

Datasets, exports and dumps are made of such: `{"id": 7, "title": "...", "text": "...", "url": "..."}`.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from chunkbus import findings
from chunkbus.chunk import Record
from producers.errors import RecordRefused
from producers.records.files import Place
from producers.records.frame import refuse_heavy
from producers.records.keeping import first_string, tenant_of, without_vectors

TEXTS = ("text", "content", "contents", "body", "markdown", "html", "article", "passage", "abstract")
"""What its text may be called; likewise the three below. The first that says something counts."""
TITLES = ("title", "headline", "subject", "name")
IDS = ("id", "_id", "doc_id", "docid", "docno", "uid", "uuid", "guid")
ADDRESSES = ("url", "link", "uri", "permalink", "source_uri", "file_path", "path")
_SAYS_WHO = (*ADDRESSES, "title", "headline", "subject")
_OF_CHUNKS = frozenset({"chunk_id", "chunk_index", "schema_version"})
_VECTORS = ("vector", "vectors", "embeddings")
_SHOWN_FIELDS = 8


@dataclass(frozen=True)
class Row:
    """`about` is every field but the text, which stood under the name `field`."""

    text: str
    field: str
    id: str | None
    address: str | None
    tenant: str | None
    about: Record

    def name(self, uri: str, place: Place) -> str:
        """Who it is among the rows of its file: by its id, else by its address, else by where it stands."""
        file = f"{uri.rstrip('/')}/{place.name}" if place.name else uri
        if self.id is not None:
            return f"{file}#id={quote(self.id, safe='')}"
        if self.address is not None:
            return self.address
        if place.element:
            return f"{file}#row={place.element}"
        return file if place.name else f"{file}#line={place.line}"


def is_row(record: Record) -> bool:
    """Whether a record that is nothing else is one: with a text, and with what says which or whose it is."""
    says_who = _id_of(record) is not None or first_string(record, *_SAYS_WHO) is not None
    return says_who and _OF_CHUNKS.isdisjoint(record) and first_string(record, *TEXTS) is not None


def read_row(record: Record) -> Row:
    """Raises RecordRefused where it has no field for a text, or says more beside than every chunk can carry."""
    name = _text_field(record)
    rest = without_vectors({field: value for field, value in record.items() if field not in (name, *_VECTORS)})
    tenant = tenant_of(rest)
    rest.pop("tenant_id", None)
    inner = rest.pop("metadata", None)
    about = {**inner, **rest} if isinstance(inner, dict) else rest if inner is None else {**rest, "metadata": inner}
    title = first_string(rest, *TITLES) or first_string(about, "title")
    if title is not None:
        about["title"] = title
    refuse_heavy(about)
    return Row(record[name] or "", name, _id_of(record), first_string(rest, *ADDRESSES), tenant, about)


def _text_field(record: Record) -> str:
    if said := next((name for name in TEXTS if isinstance(record.get(name), str) and record[name].strip()), None):
        return said
    if empty := next((name for name in TEXTS if isinstance(record.get(name, 0), str | None)), None):
        return empty
    fields = ", ".join(sorted(record)[:_SHOWN_FIELDS]) or "no fields"
    raise RecordRefused(
        findings.FIELD_MISSING, f"has no text: none of {', '.join(TEXTS)} is a string; it has {fields:.200}"
    )


def _id_of(record: Record) -> str | None:
    return next((said for said in (_id(record.get(name)) for name in IDS) if said is not None), None)


def _id(value: Any) -> str | None:
    """As a string; also the one that MongoDB writes as a table."""
    value = value.get("$oid") if isinstance(value, dict) else value
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        return None
    return str(value)
