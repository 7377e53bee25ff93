"""A flat record as the document that it is: its text, who it is, and all that it says beside.

Datasets, exports and dumps are made of such: `{"id": 7, "title": "...", "text": "...", "url": "..."}`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from chunkbus import findings
from chunkbus.chunk import Record
from producers.errors import RecordRefused
from producers.markdown.headings import MAX_CARRIED
from producers.records.files import Place
from producers.records.frame import refuse_heavy
from producers.records.keeping import tenant_of, without_vectors
from producers.rows.names import USUAL, Fields, Names

_OF_CHUNKS = frozenset({"chunk_id", "chunk_index", "schema_version"})
_SHOWN_FIELDS = 20
_FEWEST_OF_VECTOR = 32
# `n/a` and the label of a link name nothing.
_ADDRESS = re.compile(r"(?!n/a\Z)\S*\w\S*", re.IGNORECASE)
_PARTED = re.compile(r"[/.:]")
# Only this tells that a record is a row: menus have links, too.
_OF_WEB_OR_FILE = re.compile(r"[a-z][a-z0-9+.-]*://.+|.*[^/.]\.\w{1,10}", re.IGNORECASE | re.DOTALL)


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
        if self.address is not None:  # a fragment is no part of a source's name, but of this
            return self.address if "#" not in self.address else f"{file}#url={quote(self.address, safe='')}"
        if place.element:
            return f"{file}#row={place.element}"
        return file if place.name else f"{file}#line={place.line}"

    def is_like(self, other: "Row") -> bool:
        """Whether it says the same."""
        return (self.text, self.address, self.about) == (other.text, other.address, other.about)


def is_row(record: Record, *, is_alone: bool = False) -> bool:
    """Whether a record that is nothing else is one: with a text, and with what says which it is. One that is alone in
    its file may be a translation or a setting with a title; it has an id or an address."""
    fields, names = Fields(record), USUAL
    has_title = not is_alone and any(_says(fields.get(name)) for name in names.title)
    is_known = has_title or _id_of(fields, names) is not None or _is_of_web_or_file(_address_of(fields, names))
    return is_known and _OF_CHUNKS.isdisjoint(record) and any(_says(fields.get(name)) for name in names.text)


def read_row(record: Record, names: Names = USUAL) -> Row:
    """Raises RecordRefused where it has no field for a text, or says more beside than every chunk can carry."""
    fields = Fields(record)
    way, text = _text_of(record, fields, names)
    rest = _light(fields.without(way, *_other_texts(fields, names, way)))
    if type(tenant := rest.get("tenant_id")) is int:
        rest["tenant_id"] = str(tenant)
    tenant = tenant_of(rest)
    rest.pop("tenant_id", None)
    inner = rest.pop("metadata", None)
    about = {**inner, **rest} if isinstance(inner, dict) else rest if inner is None else {**rest, "metadata": inner}
    if (title := _first_string(fields, names.title)) is not None:
        about["title"] = title
    refuse_heavy(about)
    address = _address_of(fields, names) or _address_of(Fields(about), names)
    return Row(text, way[-1].lower(), _id_of(fields, names), address, tenant, about)


def _text_of(record: Record, fields: Fields, names: Names) -> tuple[tuple[str, ...], str]:
    """Where it stands, and itself; empty where all that may be it are."""
    there = [(way, fields.at(way)) for way in map(fields.way_to, names.text) if way]
    for way, value in there:
        if _says(value):
            return way, value
    for way, value in there:
        if value is None or isinstance(value, str):
            return way, ""
    shown = ", ".join(sorted(record, key=lambda name: not isinstance(record[name], str))[:_SHOWN_FIELDS])
    raise RecordRefused(
        findings.FIELD_MISSING,
        f"has no text: none of {', '.join(names.text)} is a string; it has {shown or 'no fields':.300}. "
        "Say which it is: --field text=NAME",
    )


def _other_texts(fields: Fields, names: Names, way: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    """Long ones that every chunk would carry: the page that the text was taken from, its abstract."""
    for other in map(fields.way_to, names.text):
        value = fields.at(other) if other and other != way else None
        if isinstance(value, str) and len(value) > MAX_CARRIED:
            yield other


def _light(rest: Record) -> Record:
    """Without vectors, whatever they are called."""
    return {name: value for name, value in without_vectors(rest).items() if not _is_vector(value)}


def _is_vector(value: Any) -> bool:
    is_long = isinstance(value, list) and len(value) >= _FEWEST_OF_VECTOR
    return is_long and all(isinstance(number, int | float) for number in value)


def _says(value: Any) -> bool:
    return isinstance(value, str) and not value.isspace() and value != ""


def _first_string(fields: Fields, names: Iterable[str]) -> str | None:
    return next((value for value in map(fields.get, names) if _says(value)), None)


def _address_of(fields: Fields, names: Names) -> str | None:
    told = (value.strip() for value in map(fields.get, names.address) if _says(value))
    return next((value for value in told if _ADDRESS.fullmatch(value) and _PARTED.search(value)), None)


def _is_of_web_or_file(address: str | None) -> bool:
    return address is not None and _OF_WEB_OR_FILE.fullmatch(address) is not None


def _id_of(fields: Fields, names: Names) -> str | None:
    return next((said for said in map(_id, map(fields.get, names.id)) if said is not None), None)


def _id(value: Any) -> str | None:
    """As a string; also the one that MongoDB writes as a table, and a whole number that has become a broken one."""
    value = value.get("$oid") if isinstance(value, dict) else value
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip() or None
