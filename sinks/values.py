"""Functions that read the values of a chunk. Each returns None for a value that it cannot use; none raises.

A value of the wrong type thus counts as absent, and the projection tries the next path.
"""

import math
import posixpath
import re
import unicodedata
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote, urlsplit

FACET_BYTES = 468  # Meilisearch cuts stored filterable values at this length, but not the values in a filter
MAX_MEMBERS = 256
"""The most members of a list. Chroma stores a row per member; more than 5,461 in a document make a build unreadable."""
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""UTF-8 cannot encode it, so no engine can store it or search for it."""

MAX_NUMBER = 10**15
"""Custom numbers are smaller than this, because Chroma changes numbers with more digits."""
_LARGEST_EXACT_INTEGER = 2**53 - 1  # exact in JSON of all languages, and in every engine
_MILLISECONDS = 10**11
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MOMENT, _LAST_MOMENT = -62_135_596_800, 253_402_300_799  # the years 1 to 9999
_LABEL_ENDS = re.compile("[,;\n]")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?")
_MONTH = re.compile("([0-9]{4})(?:-([0-9]{2}))?")
_DAY = re.compile("(19|2[01])[0-9]{6}")
_SECONDS = re.compile(r"-?(?:[0-9]{9,11}(?:\.[0-9]{1,9})?|[0-9]{13})")
_HALF_OF_DAY = re.compile(r"(.*\d)\s*([AP])\.?M\b\.?(.*)", re.IGNORECASE | re.DOTALL)
_OF_ZONE = re.compile("[-+a-z]", re.IGNORECASE)
_YEAR = re.compile(r"\s*(\d{4})(?!\d)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two characters or more: C: is a drive
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


def verbatim(value: Any) -> str | None:
    """A string unchanged, except that U+0000, which ends a text in SQLite, becomes U+FFFD."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else None


def string(value: Any) -> str | None:
    """A string without surrounding white space; None if it is empty."""
    text = verbatim(value)
    return (text.strip() or None) if text is not None else None


def line(value: Any) -> str | None:
    """A string on one line."""
    text = string(value)
    return " ".join(text.split()) or None if text is not None else None


def facet(value: Any) -> str | None:
    """A string on one line that every engine can filter by: at most 468 bytes, cut between characters."""
    text = line(value)
    return cut(text) if text is not None else None


def cut(text: str) -> str:
    """At most 468 bytes of a text, cut between characters."""
    if max(_sizes(text)) <= FACET_BYTES:
        return text
    size = folded = 0
    for position, character in enumerate(text):
        more = _sizes(character)
        size, folded = size + more[0], folded + more[1]
        if max(size, folded) > FACET_BYTES:
            return text[:position].rstrip()
    return text


def _sizes(text: str) -> tuple[int, int]:
    """Bytes of a string, and of its decomposed form in lower case, which Meilisearch measures: in Hangul it is up to 3
    times as long."""
    if text.isascii():
        return len(text), len(text)
    # Typed input may contain a lone surrogate, which UTF-8 cannot encode.
    folded = unicodedata.normalize("NFKD", text).lower()
    return len(text.encode(errors="surrogatepass")), len(folded.encode(errors="surrogatepass"))


def integer(value: Any) -> int | None:
    """A whole number that JSON keeps exact; 3.0 is one, true is not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST_EXACT_INTEGER:
        return None
    return value


def count(value: Any) -> int | None:
    """A non-negative whole number."""
    number = integer(value)
    return number if number is not None and number >= 0 else None


def first_count(value: Any) -> int | None:
    """A count, or the first one of a list: `[3, 5]` as a range of pages."""
    return count(value[0]) if isinstance(value, list) and value else count(value)


def last_count(value: Any) -> int | None:
    return count(value[-1]) if isinstance(value, list) and value else count(value)


def seconds(value: Any) -> float | None:
    """Non-negative seconds, rounded to milliseconds, because engines change the last digit of longer numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LARGEST_EXACT_INTEGER // 1000:
        return None
    return round(float(value), 3) if math.isfinite(value) and value >= 0 else None


def boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def lines(value: Any) -> tuple[str, ...] | None:
    """A list of strings, or one string, as lines; members of another type are left out."""
    members = value if isinstance(value, list | tuple) else [value]
    return tuple(text for text in map(line, members) if text is not None)[:MAX_MEMBERS] or None


def labels(value: Any) -> tuple[str, ...] | None:
    """A list of strings, or one string split at commas, semicolons and line breaks; without duplicates, in order."""
    members = _LABEL_ENDS.split(value) if isinstance(value, str) else value
    if not isinstance(members, list | tuple):
        return None
    return tuple(dict.fromkeys(text for text in map(facet, members) if text is not None))[:MAX_MEMBERS] or None


def names(value: Any) -> tuple[str, ...] | None:
    """People: one string, or a list of strings or of objects with `name`, or `given` and `family`, or similar keys.

    One string stays one name: "Doe, Jane" is a single person.
    """
    members = value if isinstance(value, list | tuple) else [value]
    return tuple(dict.fromkeys(text for text in map(_name, members) if text is not None))[:MAX_MEMBERS] or None


def _name(person: Any) -> str | None:
    if not isinstance(person, dict):
        return facet(person)
    for field in ("name", "full_name", "display_name"):
        whole = facet(person.get(field))
        if whole is not None:
            return whole
    given = line(person.get("given")) or line(person.get("first_name")) or line(person.get("forename"))
    family = line(person.get("family")) or line(person.get("last_name")) or line(person.get("surname"))
    return facet(" ".join(part for part in (given, family) if part))


def epoch(value: Any) -> int | None:
    """Whole UTC seconds since 1970 from a number or an ISO 8601 string. A string without a zone is UTC. Numbers
    from 10^11, the year 5138 in seconds, are milliseconds."""
    if not isinstance(value, str):
        number = math.floor(value) if seconds(value) is not None else integer(value)
        return number // 1000 if number is not None and abs(number) >= _MILLISECONDS else number
    try:
        moment = datetime.fromisoformat(value.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None


def seconds_from_milliseconds(value: Any) -> int | None:
    """Whole seconds, rounded down."""
    number = integer(value)
    return number // 1000 if number is not None else None


def year(value: Any) -> int | None:
    """1 to 9999 from a number, or from a string that begins with exactly four digits."""
    if isinstance(value, str):
        match = _YEAR.match(value)
        value = int(match[1]) if match else None
    number = integer(value)
    return number if number is not None and 1 <= number <= 9999 else None


# --- custom fields, whose values may come from CSV files as text


def text(value: Any, max_characters: int) -> str | None:
    """A string, a number as text, or a list of these, on one line of at most `max_characters`."""
    members = value if isinstance(value, list) else [value]
    found = " ".join(lines(list(map(_number_as_text, members))) or ())
    return found[:max_characters].rstrip() or None


def label(value: Any) -> str | None:
    """Like `facet`, but also accepts numbers."""
    return facet(_number_as_text(value))


def _number_as_text(value: Any) -> Any:
    """A finite number as text; anything else unchanged."""
    return str(value) if type(value) is int or (type(value) is float and math.isfinite(value)) else value


def number(value: Any) -> int | float | None:
    """A number, or a string that is a number, rounded to 15 digits, which every engine keeps. 3.0 becomes 3."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        value = (float(value) if match[1] or match[2] else int(value)) if match else None
    if type(value) not in (int, float) or not abs(value) < MAX_NUMBER:  # false for NaN, too
        return None
    value = float(f"{value:.15g}")
    return int(value) if value.is_integer() else value


def flag(value: Any) -> bool | None:
    """True or false, yes or no, 1 or 0."""
    return _FLAGS.get(str(value).strip().lower()) if isinstance(value, str | int) else None


def moment(value: Any) -> int | None:
    """Whole UTC seconds. Reads all that `epoch` reads, and dates with the name of a month, as in e-mail and HTTP. 4
    digits are a year. A text of 8 digits is a day, an integer of 8 digits only if it begins with 19, 20 or 21. A year
    or month means its start."""
    whole = integer(value)
    text = value.strip() if isinstance(value, str) else str(whole)
    found = None
    if match := _MONTH.fullmatch(text):
        found = epoch(f"{match[1]}-{match[2] or '01'}-01")
    elif whole is not None and _DAY.fullmatch(text):
        found = epoch(text)
    elif _SECONDS.fullmatch(text):
        found = epoch(math.floor(float(text)))
    if found is None:
        found = epoch(value)
    if found is None and isinstance(value, str):
        with suppress(ValueError, OverflowError):
            found = epoch(_date_in_words(text).isoformat())
    return found if found is not None and _FIRST_MOMENT <= found <= _LAST_MOMENT else None


def _date_in_words(text: str) -> datetime:
    """Also `01/Mar/24 9:14 PM` and `1 Mar 2024`. Raises ValueError, also for an unknown zone."""
    half = _HALF_OF_DAY.fullmatch(text)
    text = (half[1] + half[3] if half else text).replace("/", " ")
    found = parsedate_to_datetime(text if ":" in text else f"{text} 0:00")
    is_zone_unknown = found.tzinfo is None and _OF_ZONE.search(text.removesuffix("-0000").partition(":")[2])
    if is_zone_unknown or (half and found.hour > 12):
        raise ValueError(text)
    return found.replace(hour=found.hour % 12 + 12 * (half[2] in "Pp")) if half else found


def members(value: Any) -> list[str] | None:
    """Labels from a list, or from one string split at commas, semicolons and line breaks."""
    found = labels([_number_as_text(one) for one in value] if isinstance(value, list) else value)
    return list(found) if found is not None else None


def extension(value: Any) -> str | None:
    """`pdf` from `.PDF`."""
    text = facet(value)
    return text.lstrip(".").lower() or None if text is not None else None


def chain(value: Any) -> str | None:
    """A path of headings on one line: a list is joined with ` > `."""
    parts = lines(value)
    return " > ".join(parts) if parts is not None else None


def offset(value: Any) -> str | None:
    """A position in an append log as `segment/ordinal/byte`, from an object with these parts or a string."""
    if not isinstance(value, dict):
        number = count(value)
        return str(number) if number is not None else line(value)
    segment = value.get("segment_id")
    parts = [str(segment) if count(segment) is not None else line(segment)]
    parts += [str(n) if (n := count(value.get(part))) is not None else None for part in ("ordinal", "byte_offset")]
    return "/".join(part or "" for part in parts) if any(parts) else None


def anchor(value: Any) -> str | None:
    """The id of an element: a string, or the `xml_id`, `xml:id`, `id` or `anchor` of an object."""
    if not isinstance(value, dict):
        return line(value)
    return next((found for key in ("xml_id", "xml:id", "id", "anchor") if (found := line(value.get(key)))), None)


# --- parts of the name of a source; no file is opened


def path_of(source: str) -> str | None:
    """The path of a `file:` URL; a name without a scheme counts as a path. None for other URLs."""
    if not _SCHEME.match(source):
        return source
    try:
        parts = urlsplit(source)
    except ValueError:
        return None
    if parts.scheme.lower() != "file":
        return None
    path = unquote(parts.path)
    return (path[1:] if re.match("/[A-Za-z]:/", path) else path) or None


def filename_of(path: str | None, source: str | None) -> str | None:
    """The last part of the path, else of the URL's path."""
    if path is not None:
        return _parts(path)[1] or None
    if source is None:
        return None
    try:
        parts = urlsplit(source)
    except ValueError:
        return None
    return unquote(posixpath.basename(parts.path)) or None if parts.netloc else None


def folder_of(path: str) -> str | None:
    """The folder of a path, with / between its parts."""
    return _parts(path)[0] or None


def extension_of(filename: str) -> str | None:
    """`gz` of `a.tar.gz`; None for `.bashrc` and for endings that do not look like an extension."""
    ending = posixpath.splitext(filename)[1][1:].lower()
    return ending if re.fullmatch("[a-z0-9]{1,16}", ending) else None


def _parts(path: str) -> tuple[str, str]:
    return posixpath.split(path.replace("\\", "/") if _WINDOWS.match(path) else path)
