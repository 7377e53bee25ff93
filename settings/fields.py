"""The tables `[fields.NAME]`: fields that a configuration adds to those of chunksink."""

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

from chunksink.settings.sink_tables import suggestion

FieldType = Literal["string", "number", "boolean", "datetime", "strings"]
MAX_FIELDS = 100
NAME = re.compile("[A-Za-z][A-Za-z0-9_]{0,62}")
_PATH = re.compile(r'(?:[^."]+|"[^"]+")(?:\.(?:[^."]+|"[^"]+"))*')
_KEY = re.compile(r'[^."]+|"[^"]+"')


class FieldOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the value of a field is in a chunk, its type, and what searches can do with it."""

    path: str = ""
    type: FieldType = "string"
    filter: bool = True
    facet: bool = False
    search: bool = False
    sort: bool = False

    def keys(self, name: str) -> tuple[str, ...]:
        """The keys from the chunk to the value; by default those of `metadata.NAME`."""
        return tuple(key.strip('"') for key in _KEY.findall(self.path)) if self.path else ("metadata", name)


def read_fields(tables: Any) -> dict[str, FieldOptions]:
    """Raises ValueError with a message that names the table."""
    if not isinstance(tables, Mapping):
        raise ValueError("`fields` must contain tables, such as [fields.project]")  # noqa: TRY004 (a wrong setting)
    if len(tables) > MAX_FIELDS:
        raise ValueError(f"`fields` has {len(tables):,} tables; at most {MAX_FIELDS} are allowed")
    return {name: _read(name, table) for name, table in tables.items()}


def _read(name: str, table: Any) -> FieldOptions:
    if isinstance(table, FieldOptions):
        return table
    if not NAME.fullmatch(name):
        raise ValueError(
            f"[fields.{name!r:.80}]: a field name is a letter and up to 62 more letters, digits or _, all ASCII. "
            f"The `path` may have any keys: path = 'metadata.\"release date\"'"
        )
    try:
        options = msgspec.convert(table, FieldOptions)
    except msgspec.ValidationError as error:
        types = get_args(FieldType)
        if isinstance(table, Mapping) and table.get("type", "string") not in types:
            raise ValueError(f"[fields.{name}]: `type` must be one of {', '.join(types)}") from error
        known = FieldOptions.__struct_fields__
        unknown = [key for key in table if key not in known] if isinstance(table, Mapping) else []
        near = suggestion(unknown[0], known) if unknown else ""
        raise ValueError(f"[fields.{name}]: {error}{near}. Its options: {', '.join(known)}") from error
    if options.sort and options.type == "strings":
        raise ValueError(f"[fields.{name}]: a list has no order, so it cannot have sort = true")
    if options.path and not _PATH.fullmatch(options.path):
        raise ValueError(
            f"[fields.{name}]: {options.path!r:.100} is not a path: write keys with dots between them, such as "
            "metadata.project; put a key that contains a dot in double quotes: path = 'metadata.\"a.b\"'"
        )
    return options
