"""The search form. The page and the API read it from the address, and links contain it."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast
from urllib.parse import urlencode

from chunksink.search.errors import InvalidQuestion
from chunksink.search.filters import parse_facets, parse_filters, parse_sort
from chunksink.search.question import MAX_CONTEXT, FusionName, Mode, Question
from chunksink.sinks.custom_fields import FieldSet

MAX_LIMIT = 100
MAX_FACETS = 20
Kind = Literal["text", "number", "yes or no", "list"]


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: Kind
    meaning: str
    minimum: int = 0
    maximum: int | None = None


# The names are those of the fields of `SearchForm`.
PARAMETERS = (
    Parameter("q", "text", "a question or words; words in quotes are a phrase"),
    Parameter(
        "mode",
        "text",
        "keyword finds words, semantic finds meaning, hybrid combines both (the default if a sink has vectors)",
    ),
    Parameter("limit", "number", "the maximum number of hits", 1, MAX_LIMIT),
    Parameter("offset", "number", "how many hits to skip"),
    Parameter(
        "filter",
        "list",
        "conditions such as field=value or year>=2020; all must match, values of one field are alternatives",
    ),
    Parameter("facet", "list", "count the values of this field among the results"),
    Parameter("all", "yes or no", "return every matching chunk instead of each source once"),
    Parameter("context", "number", "how many chunks to add before and after each hit", 0, MAX_CONTEXT),
    Parameter("fusion", "text", "how hybrid mode combines the two searches: by scores (the default) or ranks"),
    Parameter(
        "sort",
        "text",
        "sort by this field, and return all documents with every word of the query; -field: highest value first",
    ),
    Parameter("explain", "yes or no", "add the contributions of both legs and all fields of the document"),
    Parameter("tenant", "text", "search only the documents of this tenant; an empty name is refused"),
)
CHUNK_PARAMETERS = ("context", "tenant")
"""The parameters of `/api/chunk`, besides its `id`."""
_BY_NAME = {parameter.name: parameter for parameter in PARAMETERS}
_YES_NO = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class SearchForm:
    """One question to the page or the API."""

    q: str = ""
    mode: str = "hybrid"
    limit: int = 10
    offset: int = 0
    filter: tuple[str, ...] = ()
    facet: tuple[str, ...] = ()
    all: bool = False
    context: int = 0
    fusion: str = "scores"
    sort: str | None = None
    explain: bool = False
    tenant: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a query nor a sort order. A sort order alone lists all documents."""
        return not (self.q.strip() or self.sort)

    def question(self, fields: FieldSet, facets: tuple[str, ...] | None = None) -> Question:
        return Question(
            self.q,
            mode=cast(Mode, self.mode),  # checked by the question itself
            limit=self.limit,
            offset=self.offset,
            filters=parse_filters(self.filter, fields),
            facets=parse_facets(self.facet, fields) if facets is None else facets,
            collapse=not self.all,
            context=self.context,
            fusion=cast(FusionName, self.fusion),
            sort=parse_sort(self.sort, fields),
        )

    def url(self, path: str = "/", **changes: Any) -> str:
        """The address of this search; defaults are left out."""
        form = replace(self, **changes)
        pairs = [
            (parameter.name, _written(value))
            for parameter in PARAMETERS
            for value in _several(getattr(form, parameter.name))
            if value != getattr(_DEFAULTS, parameter.name) and value is not None
        ]
        # An address cannot contain a lone surrogate.
        separator = "&" if "?" in path else "?"
        return f"{path}{separator}{urlencode(pairs, errors='replace')}" if pairs else path

    def without(self, condition: str) -> str:
        """The address without one of the filters."""
        return self.url(filter=tuple(one for one in self.filter if one != condition), offset=0)


_DEFAULTS = SearchForm()


def read(
    pairs: Iterable[tuple[str, str]],
    *,
    strict: bool,
    default_mode: Mode = "hybrid",
    known: Collection[str] = tuple(_BY_NAME),
) -> SearchForm:
    """Read the parameters of an address. Empty fields of a form are ignored.

    `strict` is for the API: it refuses names that are not `known`, and a second value of a parameter that is not a
    list. It keeps empty values, which are refused later: a program that lost the name of its tenant, or its filter,
    must not see all documents.
    """
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in known:
            if strict:
                raise InvalidQuestion(f"there is no parameter {name!r:.100}. Parameters: {', '.join(known)}")
            continue
        if strict or value.strip() or name == "q":
            fields.setdefault(name, []).append(value)
    for name, values in fields.items() if strict else ():
        if _BY_NAME[name].kind != "list":
            once(name, values)
    read_fields = {name: _value(_BY_NAME[name], values) for name, values in fields.items()}
    return SearchForm(**{"mode": default_mode, **read_fields})


def once(name: str, values: Sequence[str]) -> None:
    """Refuse a second value."""
    if len(values) > 1:
        raise InvalidQuestion(f"{name} occurs {len(values)} times; it may occur only once")


def _value(parameter: Parameter, values: list[str]) -> Any:
    last, written = values[-1], values[-1].strip()
    match parameter.kind:
        case "text":
            return last
        case "number":
            number = int(written) if written.isascii() and written.isdigit() and len(written) < 10 else -1
            low, high = parameter.minimum, parameter.maximum
            if number < low or (high is not None and number > high):
                allowed = f"{low} or more" if high is None else f"{low} to {high}"
                raise InvalidQuestion(f"{parameter.name} must be a whole number, {allowed}, not {written!r:.100}")
            return number
        case "yes or no":
            if (found := _YES_NO.get(written.lower())) is None:
                raise InvalidQuestion(f"{parameter.name} must be true or false, not {last!r:.100}")
            return found
        case "list":
            different = tuple(dict.fromkeys(value.strip() for value in values))
            if parameter.name == "facet" and len(different) > MAX_FACETS:
                raise InvalidQuestion(f"{len(different)} facets were requested; at most {MAX_FACETS} are allowed")
            return different


def _several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _written(value: Any) -> str:
    return "1" if value is True else str(value)
