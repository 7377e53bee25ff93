"""Custom fields: the fields that `[fields.NAME]` adds to documents, and the other metadata that documents keep."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from chunksink.chunkbus.canonical import canonical_json, sha256_hex
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.findings import FIELD_VALUE, Problem, Severity
from chunksink.chunkbus.record_checks import Rules
from chunksink.settings.errors import ConfigError
from chunksink.settings.fields import FieldOptions, FieldType
from chunksink.sinks import values
from chunksink.sinks.document import NAMES
from chunksink.sinks.fields import PROJECTION, Read

MAX_TEXT = 8000
"""The maximum length of a string that is not a label: see `CustomField.is_label`."""
MAX_MEMBERS_OF_ALL_LISTS = 1000
"""The most members that all custom lists of a document have together. More than 5,461 make a build of Chroma
unreadable."""
MAX_METADATA = 100
MAX_METADATA_TEXT = 1000
_NOT_KEPT = frozenset(("stable_id",))
"""`stable_id` is the number of a chunk in a file of several sources, so it changes when another source changes."""
_LARGEST_INTEGER = 2**63 - 1
_RULES = {
    path: [rule for rule in PROJECTION if path in rule.paths]
    for path in {path for rule in PROJECTION for path in rule.paths if path.startswith("metadata.")}
}
"""The rules that read a value of the metadata, by its path."""
_TYPES: dict[FieldType, tuple[Read, str]] = {
    "string": (values.label, "a string or a number"),
    "number": (values.number, "a number of up to 15 digits"),
    "boolean": (values.flag, "true or false, yes or no, 1 or 0"),
    "datetime": (values.moment, "ISO 8601, a date with an English month, a year, a month, or seconds since 1970"),
    "strings": (values.members, "a list of strings, or one string"),
}
"""How a value is read, and what it must be."""


@dataclass(frozen=True)
class CustomField:
    name: str
    keys: tuple[str, ...]
    options: FieldOptions

    @property
    def is_label(self) -> bool:
        """Whether engines compare its values, which limits their length."""
        return self.options.filter or self.options.facet or self.options.sort

    @property
    def digest(self) -> str:
        """The name, and a hash of the options that affect documents."""
        table = [*self.keys, self.options.type, self.is_label, self.options.search]
        return f"{self.name}:{sha256_hex(canonical_json(table))[:16]}"

    def read(self, record: Record) -> tuple[Any, Any]:
        """The raw value in a chunk, and the value of the field. Each is None if there is none."""
        raw: Any = record
        for key in self.keys:
            if isinstance(raw, list):
                found = [one[key] for one in raw if isinstance(one, dict) and key in one]
                raw = [member for one in found for member in (one if isinstance(one, list) else [one])]
            else:
                raw = raw.get(key) if isinstance(raw, dict) else None
        if self.options.type == "string" and not self.is_label:
            return raw, values.text(raw, MAX_TEXT)
        return raw, _TYPES[self.options.type][0](raw)


@dataclass(frozen=True)
class FieldSet:
    """The custom fields of an index, by name."""

    fields: tuple[CustomField, ...] = ()

    @classmethod
    def of(cls, tables: Mapping[str, FieldOptions]) -> "FieldSet":
        for name in tables:
            if name in NAMES:
                raise ConfigError(
                    f"[fields.{name}]: `{name}` is a built-in field of every document; choose another name, such as "
                    f'[fields.my_{name}] with path = "metadata.{name}"'
                )
        return cls(tuple(CustomField(name, options.keys(name), options) for name, options in sorted(tables.items())))

    def get(self, name: str) -> CustomField | None:
        return next((field for field in self.fields if field.name == name), None)

    def facets(self) -> list[str]:
        return [field.name for field in self.fields if field.options.facet]

    def sortable(self) -> list[str]:
        return [field.name for field in self.fields if field.options.sort]

    def choices(self) -> list[str]:
        """The facets whose values can be chosen as filters."""
        return [field.name for field in self.fields if field.options.facet and field.options.filter]

    def rules(self, *, require_source_checksum: bool) -> Rules:
        """The rules by which chunks are checked. A value that does not fit one of these fields is a warning."""
        return Rules(require_source_checksum, self if self.fields else None)

    def display_value(self, name: str, value: Any) -> Any:
        """A stored value as people read it: a time as ISO 8601 instead of seconds. Unchanged if the field is no longer
        configured."""
        field = self.get(name)
        match field.options.type if field is not None else None:
            case "datetime":
                return datetime.fromtimestamp(int(value), UTC).isoformat().replace("+00:00", "Z")
            case "number":
                return values.number(value)
            case "boolean":
                return value in (True, "true")
        return value

    @property
    def digest(self) -> str:
        """The digests of all fields; "" without custom fields."""
        return ",".join(field.digest for field in self.fields)

    def project(self, record: Record, document: Mapping[str, Any]) -> dict[str, Any]:
        """The fields `fields`, `fields_text` and `metadata` of the document. `document` has the other fields."""
        found = {field.name: value for field in self.fields if (value := field.read(record)[1]) is not None}
        left = MAX_MEMBERS_OF_ALL_LISTS
        for name, value in found.items():
            if isinstance(value, list):
                found[name] = value[:left]
                left -= len(found[name])
        found = {name: value for name, value in found.items() if value != []}
        return {
            "fields": found or None,
            "fields_text": self._text(found),
            "metadata": _other_metadata(record, document, {field.keys for field in self.fields if field.name in found}),
        }

    def _text(self, found: Mapping[str, Any]) -> str | None:
        """The values for keyword search, one per line."""
        names = [field.name for field in self.fields if field.options.search and field.name in found]
        searched = [self.display_value(name, found[name]) for name in names]
        lines = [", ".join(value) if isinstance(value, list) else str(value) for value in searched]
        return "\n".join(lines) or None

    def problems(self, record: Record) -> Iterator[Problem]:
        """The values of a chunk that do not have the type of their field. The document is stored without them."""
        for field in self.fields:
            raw, value = field.read(record)
            if raw is not None and value is None and raw not in ("", []):
                detail = f"{'.'.join(field.keys)} is {raw!r:.60}, expected {_TYPES[field.options.type][1]}"
                yield Problem(FIELD_VALUE, f"[fields.{field.name}]: {detail}", Severity.WARNING)


NO_FIELDS = FieldSet()


def _other_metadata(record: Record, document: Mapping[str, Any], used: set[tuple[str, ...]]) -> str | None:
    """The scalar values of the metadata that are in no field, as one JSON object, so that engines need no column for
    each key."""
    metadata = record.get("metadata")
    if not isinstance(metadata, dict):
        return None
    kept: dict[str, Any] = {}
    for name, raw in metadata.items():
        if name in _NOT_KEPT or ("metadata", name) in used or len(kept) == MAX_METADATA:
            continue
        value = _scalar(raw)
        if value is not None and not _is_in_field(f"metadata.{name}", raw, document):
            kept[values.verbatim(name[:MAX_METADATA_TEXT]) or ""] = value
    return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS).decode() if kept else None


def _scalar(raw: Any) -> Any:
    if isinstance(raw, str):
        return values.text(raw, MAX_METADATA_TEXT)
    if isinstance(raw, int):  # also true and false
        return raw if abs(raw) <= _LARGEST_INTEGER else None
    return values.number(raw)


def _is_in_field(path: str, raw: Any, document: Mapping[str, Any]) -> bool:
    """Whether a field of the document already contains this value completely. `year` contains only a part of a date."""
    for rule in _RULES.get(path, ()):
        value = rule.read(raw)
        if value is not None and value == document[rule.name]:
            return rule.read is not values.year or str(raw).strip() == str(value)
    return False
