"""Filters as people write them: `source_type=md`, `year>=2020`, `path=docs/*`. docs/filters.md explains the grammar."""

import re
from calendar import monthrange, timegm
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import inf, nextafter
from typing import Any

from chunksink.chunkbus.identity import unicode_forms
from chunksink.search.errors import InvalidQuestion
from chunksink.settings.fields import FieldType
from chunksink.settings.sink_tables import suggestion
from chunksink.sinks import values
from chunksink.sinks.custom_fields import NO_FIELDS, CustomField, FieldSet
from chunksink.sinks.document import CUSTOM, LISTS
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.fields import FILTERS, SORTABLE, VALUE_TYPES, WHOLE
from chunksink.sinks.reader import Filter, Sort, Value

_WRITTEN = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(>=|<=|=|>|<)(?!=)(.*)", re.DOTALL)
_HOW = "write field=value, or field>=value, field<=value, field>value, field<value"
_INSTEAD = {
    "source": "path or filename",
    "source_uri": "path or filename",
    "file_path": "path",
    "file_name": "filename",
}
"""Names of a source that people try to filter by, and the fields that can be filtered instead."""
_DAY = 86_400
_SECONDS = re.compile(r"-[0-9]{1,16}|[0-9]{1,3}|[0-9]{5,7}|[0-9]{9,16}")
"""Seconds since 1970. Four digits are a year, eight digits a day."""
_MONTHS = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}")

_Given = Value | date | Decimal
FilterArgument = Sequence[str | Filter] | Mapping[str, _Given | Iterable[_Given]] | None
"""Filters as programs pass them: a list of conditions as people write them, or a mapping of each field to its value or
values."""


@dataclass(frozen=True)
class FilterField:
    """A field to filter by: its name in documents, its type, and the operators it has besides `=`."""

    field: str
    type: FieldType
    is_whole: bool = False
    """Whether numbers are whole."""
    has_order: bool = False
    has_patterns: bool = False

    @property
    def operators(self) -> list[str]:
        return ["=", ">=", "<=", ">", "<"] if self.has_order else ["="]


def filter_fields(fields: FieldSet) -> dict[str, FilterField]:
    """All fields to filter by, by the name that people use."""
    ours = {name: _of_chunksink(name) for name in FILTERS}
    return ours | {
        field.name: FilterField(
            f"{CUSTOM}{field.name}",
            field.options.type,
            is_whole=field.options.type == "datetime",
            has_order=field.options.type in ("number", "datetime"),
        )
        for field in fields.fields
        if field.options.filter
    }


def _of_chunksink(name: str) -> FilterField:
    has_order, has_patterns = FILTERS[name] == "range", FILTERS[name] == "pattern"
    if name == "modified_at_epoch":
        return FilterField(name, "datetime", is_whole=True, has_order=True)
    if name in LISTS:
        return FilterField(name, "strings")
    types: dict[type, FieldType] = {int: "number", bool: "boolean", str: "string"}
    return FilterField(name, types[VALUE_TYPES[name]], is_whole=True, has_order=has_order, has_patterns=has_patterns)


def parse_filters(written: Iterable[str], fields: FieldSet = NO_FIELDS) -> tuple[Filter, ...]:
    """All conditions must hold, but several values of one field are alternatives."""
    known = filter_fields(fields)
    values: dict[str, list[Value]] = {}
    patterns: dict[str, list[str]] = {}
    least: dict[str, float] = {}
    most: dict[str, float] = {}
    periods: set[str] = set()
    for text in written:
        name, operator, value = _parts(text)
        field = _known(name, known, fields)
        if operator != "=" and not field.has_order:
            ordered = ", ".join(sorted(name for name, one in known.items() if one.has_order))
            raise InvalidFilter(f"{name} supports only =, not {operator}. Fields that support {operator}: {ordered}")
        if field.has_patterns and ("*" in value or "?" in value):
            patterns.setdefault(name, []).extend(unicode_forms(value))
            continue
        first, last = _range(name, field, value)
        if operator == "=" and (name in periods or (first != last and name in values)):
            raise InvalidQuestion(f"{name} cannot be in two periods: give one period, or use >= and <=")
        if operator == "=" and first == last:
            values.setdefault(name, []).extend(unicode_forms(value) if field.has_patterns else [first])
            continue
        periods |= {name} if operator == "=" else set()
        low, high = _bounds(field, operator, first, last)
        if low is not None:
            least[name] = max(low, least.get(name, low))
        if high is not None:
            most[name] = min(high, most.get(name, high))
    for name in patterns.keys() & values.keys():  # exact values and patterns of one field are alternatives
        patterns[name] += map(str, values.pop(name))
    return (
        *(_filter(known[name], any_of=tuple(some)) for name, some in values.items()),
        *(_filter(known[name], like=tuple(some)) for name, some in patterns.items()),
        *(
            _filter(known[name], at_least=least.get(name), at_most=most.get(name))
            for name in dict.fromkeys((*least, *most))
        ),
    )


def parse_facets(written: str | Iterable[str] | None, fields: FieldSet = NO_FIELDS) -> tuple[str, ...]:
    """The fields to count, as documents name them. `written` is one field, several, or None."""
    custom = fields.facets()
    written = () if written is None else (written,) if isinstance(written, str) else written
    if not isinstance(written, Iterable):
        raise InvalidQuestion(f"facets must be a list of fields, not {written!r:.100}")
    return tuple(_in_documents(_facet_name(name, fields, (*FILTERS, *custom)), custom) for name in written)


def _facet_name(name: str, fields: FieldSet, known: Sequence[str]) -> str:
    if name in known:
        return name
    if (field := fields.get(name)) is not None:
        raise InvalidFilter(f"no facets for {name}: {_remedy(field, 'facet')}")
    raise InvalidFilter(
        f"no facets for {name!r:.100}{suggestion(str(name), known)}. Fields with facets: {', '.join(sorted(known))}"
    )


def _remedy(field: CustomField, option: str) -> str:
    """How to enable an option. A sync is needed only if `filter`, `facet` and `sort` are all off for the field."""
    return f"set {option} = true in [fields.{field.name}]{'' if field.is_label else ', and sync'}"


def parse_sort(written: str | None, fields: FieldSet = NO_FIELDS) -> Sort | None:
    """`year` sorts from the lowest value, `-year` from the highest."""
    if written is None:
        return None
    if not isinstance(written, str):
        raise InvalidQuestion(f"sort must be the name of one field, not {written!r:.100}")
    name = written.removeprefix("-")
    sortable = fields.sortable()
    if name not in (*SORTABLE, *sortable):
        near = suggestion(name, [*SORTABLE, *sortable])
        if (field := fields.get(name)) is not None:
            is_list = field.options.type == "strings"
            remedy = "it is a list, which has no order" if is_list else _remedy(field, "sort")
            raise InvalidFilter(f"cannot sort by {name}: {remedy}")
        possible = ", ".join((*SORTABLE, *sortable))
        raise InvalidFilter(f"cannot sort by {name!r:.100}{near}; possible fields: {possible}")
    return Sort(_in_documents(name, sortable), descending=written.startswith("-"))


def _in_documents(name: str, custom: Sequence[str]) -> str:
    return f"{CUSTOM}{name}" if name in custom else name


def as_filters(argument: FilterArgument, fields: FieldSet = NO_FIELDS) -> tuple[Filter, ...]:
    """Convert a `FilterArgument` to filters."""
    if argument is None:
        return ()
    if isinstance(argument, Mapping):
        return tuple(one for name, value in argument.items() for one in _of_field(name, value, fields))
    if isinstance(argument, str | bytes) or not isinstance(argument, Iterable):
        raise InvalidQuestion(f"the filters must be a list of conditions, not {argument!r:.100}")
    filters: list[Filter] = []
    written: list[str] = []
    for one in argument:
        if isinstance(one, Filter):
            filters.append(one)
        elif isinstance(one, str):
            written.append(one)
        else:
            raise InvalidQuestion(f"{one!r:.200} is not a filter: {_HOW}")
    return (*filters, *parse_filters(written, fields))


def _of_field(name: str, argument: Any, fields: FieldSet) -> tuple[Filter, ...]:
    argument = argument.tolist() if hasattr(argument, "tolist") else argument  # numpy or pandas
    is_several = isinstance(argument, Iterable) and not isinstance(argument, str | bytes | Mapping)
    several = list(argument) if is_several else [argument]
    several = [value.tolist() if hasattr(value, "tolist") else value for value in several]
    several = [value.isoformat() if isinstance(value, date) else value for value in several]
    field = _known(name, filter_fields(fields), fields)
    if field.type in ("string", "strings"):
        several = [str(value) if type(value) in (int, float, Decimal) else value for value in several]
    elif field.type == "datetime":  # 20260714 is a day, also as a number
        several = [str(value) if type(value) is int else value for value in several]
    texts = [value for value in several if isinstance(value, str)]
    if texts and len(texts) == len(several):
        return parse_filters([f"{name}= {value}" for value in texts], fields)  # a space, in case a value begins with =
    return (_filter(field, any_of=tuple(_typed(name, field, value) for value in several)),)


def _typed(name: str, field: FilterField, value: Any) -> Value:
    if isinstance(value, str):
        first: Value
        first, last = _range(name, field, value)
        if first != last:
            raise InvalidQuestion(f"{value!r:.100} is a period, so it cannot be one of several values of {name}")
        return first
    plain = float(value) if isinstance(value, Decimal) else value
    found: Value | None = plain if type(plain) in (int, float) else None
    if field.type == "boolean":
        found = values.flag(plain)
    if found is None or field.type in ("string", "strings"):
        raise InvalidFilter(f"{name} cannot be {value!r:.100}: its values are of type {field.type}")
    rounded = values.number(found) if field.type == "number" and not field.is_whole else None
    return found if rounded is None else rounded


def _filter(field: FilterField, **condition: Any) -> Filter:
    return Filter(field.field, is_list=field.type == "strings", **condition)


def _known(name: str, known: Mapping[str, FilterField], fields: FieldSet) -> FilterField:
    if name in known:
        return known[name]
    if not isinstance(name, str):
        raise InvalidFilter(f"{name!r:.100} is not the name of a field")
    if fields.get(name) is not None:
        raise InvalidFilter(f"{name} cannot be filtered: [fields.{name}] has filter = false")
    last = name.rpartition(".")[2]  # `metadata.topic`: suggest names similar to `topic`
    near = f" (did you mean {_INSTEAD[last]}?)" if last in _INSTEAD else suggestion(last, known)
    own = "" if near else f". For a field of your own, add [fields.{last:.50}]: see `chunksink validate --fields`"
    raise InvalidFilter(f"{name!r:.100} cannot be filtered{near}; these fields can: {', '.join(sorted(known))}{own}")


def _parts(text: str) -> tuple[str, str, str]:
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise InvalidQuestion(f"{text!r:.200} is not a filter: {_HOW}")
    name, operator, value = match[1], match[2], match[3].strip()
    if not value:
        raise InvalidQuestion(f"the filter {text!r:.200} has no value: {_HOW}")
    return name, operator, value


def _range(name: str, field: FilterField, value: str) -> tuple[Any, Any]:
    """The first and last value that `value` covers: a day covers all its seconds."""
    if field.type == "datetime":
        return _moments(name, value)
    if field.type == "boolean":
        flag = values.flag(value)
        if flag is None:
            raise InvalidQuestion(f"{name} must be true or false, not {value!r:.100}")
        return flag, flag
    if field.type == "number":
        number = values.number(value)
        if number is None or (field.is_whole and type(number) is not int):
            kind = "whole number" if field.is_whole else "number"
            raise InvalidQuestion(f"{name} must be a {kind} of up to 15 digits, not {value!r:.100}")
        return number, number
    if field.field == "extension":
        value = value.removeprefix(".")
    label = value if field.field in WHOLE else values.cut(value)  # as in the index
    return label, label


def _moments(name: str, value: str) -> tuple[int, int]:
    if _SECONDS.fullmatch(value):
        return int(value), int(value)
    try:
        return _span(value)
    except ValueError:
        raise InvalidQuestion(
            f"{name} must be a time such as 2026, 2026-05, 2026-05-31 or 2026-05-31T09:00:00+02:00, or UTC seconds "
            f"since 1970, not {value!r:.100}"
        ) from None


def _span(value: str) -> tuple[int, int]:
    """The first and last second of a year, month, day or moment; UTC unless the time names a zone."""
    if match := _MONTHS.fullmatch(value):
        year, first, last = int(match[1]), int(match[2] or 1), int(match[2] or 12)
        return timegm((year, first, 1, 0, 0, 0)), timegm((year, last, monthrange(year, last)[1], 23, 59, 59))
    if _DATE.fullmatch(value):
        start = timegm(date.fromisoformat(value).timetuple())
        return start, start + _DAY - 1
    moment = values.moment(value)
    if moment is None:
        raise ValueError(value)
    return moment, moment


def _bounds(field: FilterField, operator: str, first: float, last: float) -> tuple[float | None, float | None]:
    """Inclusive bounds."""
    match operator:
        case "=":
            return first, last
        case ">=":
            return first, None
        case "<=":
            return None, last
        case ">":
            return (last + 1 if field.is_whole else nextafter(last, inf)), None
    return None, (first - 1 if field.is_whole else nextafter(first, -inf))
