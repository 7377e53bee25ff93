"""A flat record as the document that it is: its text, who it is, and all that it says beside.

Datasets, exports and dumps are made of such: `{"id": 7, "title": "...", "text": "...", "url": "..."}`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.producers.errors import RecordRefused
from chunksink.producers.markdown.headings import MAX_CARRIED
from chunksink.producers.records.files import Place
from chunksink.producers.records.frame import refuse_heavy
from chunksink.producers.records.keeping import tenant_of, without_vectors
from chunksink.producers.rows.names import USUAL, Fields, Names, Way, laid_over, says

_OF_CHUNKS = frozenset({"chunk_id", "chunk_index", "schema_version"})
_SHOWN_FIELDS = 20
_FEWEST_OF_VECTOR = 32
_LONGEST_ADDRESS = 4096
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_ENDING = re.compile(r"[^/.]\.\w{1,10}\Z")


@dataclass(frozen=True)
class Row:
    """`about` is every field but the text, which was `called` so; `moved` what its title displaces. `unread` names long
    fields that could be the text as well, and are in no chunk."""

    text: str
    called: str
    id: str | None
    address: str | None
    tenant: str | None
    about: Record
    moved: Record = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    def name(self, uri: str, place: Place) -> str:
        """Who it is: by its id or its path among the rows of its file, by its address on the web, else by where it
        stands. A fragment is no part of a source's name, but of this."""
        file = f"{uri.rstrip('/')}/{place.name}" if place.name else uri
        if self.id is not None:
            return f"{file}#id={quote(self.id, safe='')}"
        if self.address is not None:
            is_name = _SCHEME.match(self.address) is not None and "#" not in self.address
            return self.address if is_name else f"{file}#address={quote(self.address, safe='')}"
        if place.element:
            return f"{file}#row={place.element}"
        return file if place.name else f"{file}#line={place.line}"

    def is_like(self, other: "Row") -> bool:
        """Whether it says the same."""
        return (self.text, self.address, self.about) == (other.text, other.address, other.about)


def is_row(record: Record, *, is_alone: bool = False) -> bool:
    """Whether a record that is nothing else is one: with a text, and with what says which it is. One that is alone in
    its file may be a translation or a setting with a title; it has an id or an address. Menus have links, too: only
    one with a scheme or an ending tells."""
    if not _OF_CHUNKS.isdisjoint(record):
        return False
    if not says_text(record):
        return False
    fields = Fields(record)
    if not is_alone and any(_is_said(value) for _, value in fields.under(USUAL.title)):
        return True
    addresses = _addresses(fields, USUAL)
    return _id_of(fields, USUAL) is not None or any(_SCHEME.match(one) or _ENDING.search(one) for one in addresses)


def says_text(record: Record, names: Names = USUAL) -> bool:
    return any(_is_said(value) for _, value in Fields(record).under(names.text))


def read_row(record: Record, names: Names = USUAL) -> Row:
    """Raises RecordRefused where it has no field for a text, or says more beside than every chunk can carry."""
    fields = Fields(record)
    way, text = _text_of(record, fields, names)
    others = list(dict.fromkeys(_other_texts(fields, names, way)))
    rest = _light(fields.without(way, *others))
    inner = _taken(rest, "metadata")
    tenant = tenant_of({"tenant_id": _as_name(_taken(rest, "tenant_id")), "metadata": inner})
    below = Fields(inner if isinstance(inner, dict) else {})
    about = laid_over(inner, rest) if isinstance(inner, dict) else rest | ({"metadata": inner} if says(inner) else {})
    titles = (value for name in names.title for one in (fields, below) for _, value in one.under([name]))
    moved: Record = {}
    if (title := next(filter(_is_said, titles), None)) is not None:
        moved = {"title": about["title"]} if says(about.get("title")) and about["title"] != title else {}
        about["title"] = title
    refuse_heavy(about)
    address = next((one for one in (*_addresses(fields, names), *_addresses(below, names))), None)
    unread = tuple(".".join(other) for other in others)
    return Row(text, way[-1].lower(), _id_of(fields, names), address, tenant, about, moved, unread)


def _text_of(record: Record, fields: Fields, names: Names) -> tuple[Way, str]:
    """Where it stands, and itself; empty where all that may be it are."""
    there = list(fields.under(names.text))
    for way, value in there:
        if _is_said(value):
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


def _other_texts(fields: Fields, names: Names, way: Way) -> Iterator[Way]:
    """Long ones that every chunk would carry: the page that the text was taken from, its abstract."""
    for other, value in fields.under((*names.text, *USUAL.text)):
        if other != way and isinstance(value, str) and len(value) > MAX_CARRIED:
            yield other


def _light(rest: Record) -> Record:
    """Without vectors, whatever they are called."""
    return {name: value for name, value in without_vectors(rest).items() if not _is_vector(value)}


def _is_vector(value: Any) -> bool:
    is_long = isinstance(value, list) and len(value) >= _FEWEST_OF_VECTOR
    return is_long and all(type(number) in (int, float) for number in value)


def _taken(rest: Record, name: str) -> Any:
    """What is called so, in whatever case; it is not among the rest then."""
    spelled = [one for one in rest if one.lower() == name]
    values = [rest.pop(one) for one in spelled]
    return next(filter(says, values), None)


def _as_name(tenant: Any) -> Any:
    return str(tenant) if type(tenant) is int else tenant


def _is_said(value: Any) -> bool:
    return isinstance(value, str) and says(value)


def _addresses(fields: Fields, names: Names) -> Iterator[str]:
    """`n/a` and the label of a link are none."""
    for _, value in fields.under(names.address):
        if _is_said(value) and _may_be_address(address := value.strip()):
            yield address


def _may_be_address(told: str) -> bool:
    if len(told) > _LONGEST_ADDRESS or told.lower() == "n/a" or any(map(str.isspace, told)):
        return False
    return any(map(str.isalnum, told)) and any(sign in told for sign in "/.:")


def _id_of(fields: Fields, names: Names) -> str | None:
    return next((said for said in (_id(value) for _, value in fields.under(names.id)) if said is not None), None)


def _id(value: Any) -> str | None:
    """As a string; also the one that MongoDB writes as a table, and a whole number that has become a broken one."""
    value = value.get("$oid") if isinstance(value, dict) else value
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip() or None
