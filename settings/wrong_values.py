"""What is wrong with a setting, in the words of who wrote it."""

import re
from typing import Literal, get_args, get_origin, get_type_hints

import msgspec

_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.(?P<name>\w+)(?P<deeper>[^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile("Object contains unknown field `(.*)`")


def told(error: msgspec.ValidationError, kind: type[msgspec.Struct]) -> str:
    """The message of a value that does not fit, with what would."""
    names = ", ".join(kind.__struct_fields__)
    if unknown := _UNKNOWN.search(str(error)):
        return f"there is no setting {unknown[1]}; there are {names}"
    found = _PLACE.match(str(error))
    name = found["name"] if found else None
    if found is None or name is None:
        return str(error)
    if name == "sink" and not found["deeper"]:
        return '`sink` holds tables, as [sink.fts]; which sinks are written is said by `sinks`, as sinks = ["fts"]'
    if name == "sinks" and "length" in found["what"]:
        return '`sinks` names one sink or more, none of them empty: sinks = ["fts"], or `fts,chroma` in the environment'
    if allowed := _allowed(kind, name):
        return f"`{name}` is one of {', '.join(allowed)}, not {found['what'].removeprefix('Invalid enum value ')}"
    return f"`{name}{found['deeper']}`: {found['what']}"


def _allowed(kind: type[msgspec.Struct], name: str) -> tuple[str, ...]:
    hint = get_type_hints(kind).get(name)
    return get_args(hint) if get_origin(hint) is Literal else ()
