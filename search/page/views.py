"""Converts answers into the values that the templates show."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from markupsafe import Markup

from chunksink.chunkbus.wording import counted
from chunksink.search import question
from chunksink.search.answer import Answer, SearchHit, Surrounded
from chunksink.search.excerpt import BEFORE, beginning, ending, excerpt, has_markdown, keeps_lines
from chunksink.search.explanation import value_text
from chunksink.search.facets import IN_EVERY_DOCUMENT
from chunksink.search.link import link_of, locator_of, name_of, section_of
from chunksink.search.page.form import SearchForm
from chunksink.search.page.passage_text import as_html
from chunksink.search.phrases import phrases_of, respelled, without_quotes
from chunksink.sinks.document import Document
from chunksink.sinks.reader import Piece

MODES = {"hybrid": "Both", "keyword": "Words", "semantic": "Meaning"}
"""The modes that the page offers, with their labels."""

FACETS = {
    "source_type": "Type",
    "language": "Language",
    "tags": "Tag",
    "authors": "Author",
    "year": "Year",
    "source_folder": "Folder",
}
"""The facets of the page, with their labels."""
_LANGUAGE = re.compile("[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
_MAX_MARKDOWN = 100_000
"""Longer texts are shown as plain text: Markdown takes up to 15 µs for each character."""
_VALUES = 40
_SHOWN_CHARACTERS = 280


@dataclass(frozen=True)
class PlaceView:
    """The place of a chunk in its source. `language` is set if it is a tag by which browsers choose fonts. `href` is
    set for addresses on the web and, with a `source_url`, for relative ones."""

    title: str
    language: str | None
    path: tuple[str, ...]
    source: str
    href: str | None


@dataclass(frozen=True)
class Choice:
    """A value of a facet; `condition` is the filter that selects it."""

    text: str
    condition: str
    families: int
    chosen: bool


@dataclass(frozen=True)
class FacetView:
    field: str
    label: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class PassageView:
    html: Markup
    style: str
    """The classes of its element."""
    chosen: bool


def pieces_of(hit: SearchHit) -> tuple[Piece, ...]:
    """The excerpt of a hit. Without found words it is one line, except of code."""
    pieces = excerpt(hit.snippet, hit.document)
    if not any(piece.match for piece in pieces):
        text = "".join(piece.text for piece in pieces)
        shown = text if keeps_lines(hit.document) else " ".join(text.split())
        return (Piece(beginning(shown, _SHOWN_CHARACTERS)),)
    return (replace(pieces[0], text=ending(pieces[0].text, BEFORE)), *pieces[1:])


def place_of(document: Document, source_url: str | None) -> PlaceView:
    source = document.source_uri or document.path or ""
    headed = document.headings[0] if document.headings else ""
    title = document.title or headed or name_of(source) or document.chunk_id
    headings = document.headings or (section_of(document) or "",)
    path = [heading for heading in headings if heading not in ("", title)]
    language = document.language if _LANGUAGE.fullmatch(document.language or "") else None
    return PlaceView(title, language, (*path, *_position(document)), source, _href(document, source_url))


def _href(document: Document, source_url: str | None) -> str | None:
    """A link if the source is on the web, or relative with a `source_url`. Other sources are shown as text."""
    link = link_of(document)
    if link is None:
        return None
    parts = urlsplit(link)
    if parts.scheme.lower() in ("http", "https") and parts.netloc:
        return link
    if source_url is None or parts.scheme or parts.netloc or ".." in parts.path.replace("\\", "/").split("/"):
        return None
    return f"{source_url.rstrip('/')}/{link.lstrip('/')}"


def _position(document: Document) -> Iterator[str]:
    place = locator_of(document)
    if "page_start" in place:
        first, last = place["page_start"], place.get("page_end")
        yield f"page {first}" if last in (None, first) else f"pages {first} to {last}"
    if "slide_number" in place:
        yield f"slide {place['slide_number']}"
    if "sheet_name" in place:
        yield f"sheet {place['sheet_name']}"
    if "timestamp_start" in place:
        yield _time(float(place["timestamp_start"]))
    if "speaker" in place:
        yield str(place["speaker"])


def _time(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def chunk_url(chunk_id: str, form: SearchForm, context: int = 2) -> str:
    """The address of the page that shows the passage. It contains the query: the page marks its words and links back
    to the hits."""
    return form.url(f"/chunk?id={quote(chunk_id, safe='', errors='replace')}", context=context) + "#found"


def modes(form: SearchForm) -> list[tuple[str, str]]:
    """The offered modes, and the mode of the form if it is not among them."""
    return [(mode, MODES.get(mode, mode.capitalize())) for mode in question.MODES if mode in (*MODES, form.mode)]


def facet_views(answer: Answer, form: SearchForm, custom: Sequence[str]) -> list[FacetView]:
    """Facets with more than one value, or with a chosen one; `custom` are those of custom fields."""
    shown = []
    for field, label in {**FACETS, **{name: label_of(name) for name in custom}}.items():
        choices = []
        for value in answer.facets.get(field, [])[:_VALUES]:
            # Not `value_text`: it writes midnight as a day, which a filter reads as a period. A filter accepts several
            # exact times as alternatives, but only one period.
            text = str(value.value).lower() if isinstance(value.value, bool) else str(value.value)
            condition = f"{field}={' ' if text.startswith('=') else ''}{text}"  # `==` is not an operator
            choices.append(Choice(value_text(value.value), condition, value.families, condition in form.filter))
        if len(choices) > 1 or any(choice.chosen for choice in choices):
            shown.append(FacetView(field, label, tuple(choices)))
    return shown


def label_of(name: str) -> str:
    """The name of a custom field for readers."""
    return name.replace("_", " ").capitalize()


def sort_choices(names: Sequence[str], form: SearchForm) -> list[tuple[str, str, bool]]:
    """The orders to choose from, each with its label and whether it is chosen; none if there is only relevance."""
    orders = [("", "Relevance")] if names or form.sort else []
    orders += [
        order
        for name in names
        for order in ((name, f"{label_of(name)}, ascending"), (f"-{name}", f"{label_of(name)}, descending"))
    ]
    if form.sort and form.sort not in dict(orders):
        orders.append((form.sort, form.sort))
    return [(value, label, value == (form.sort or "")) for value, label in orders]


def passages(found: Surrounded) -> list[PassageView]:
    return [_passage(one, found) for one in (*found.before, found.document, *found.after)]


def _passage(document: Document, found: Surrounded) -> PassageView:
    markdown = has_markdown(document) and len(document.text) <= _MAX_MARKDOWN
    chosen = document.id == found.document.id
    html = as_html(document.text, found.matches, markdown=markdown)
    if chosen:
        html = Markup(str(html).replace("<mark>", '<mark id="found">', 1))
    style = "rendered" if markdown else "plain-text lines" if keeps_lines(document) else "plain-text"
    return PassageView(html, style, chosen)


def outcome(answer: Answer, form: SearchForm) -> str:
    """The number of hits, in words."""
    noun = "passage" if form.all else "source"
    first, last = form.offset + 1, form.offset + len(answer.hits)
    if not answer.hits:
        return f"No more {noun}s" if form.offset else f"No {noun}s"
    if first == 1 and not answer.more:
        number = last + sum(len(hit.same_text) for hit in answer.hits)
        return counted(number, noun)
    what = f"{noun.capitalize()}s {first} to {last}" if last > first else f"{noun.capitalize()} {first}"
    total = sum(value.families for value in answer.facets.get(IN_EVERY_DOCUMENT, ()))
    if noun == "source" and total >= last:
        return f"{what} of {'' if answer.counts_all else 'at least '}{total:,}"
    return f"{what}, more follow" if answer.more else what


def suggestions(answer: Answer, form: SearchForm) -> list[str]:
    """Queries to try next: with misspelt words corrected, and without quotes if no text contains the phrase."""
    corrected = respelled(form.q, answer.suggestions)
    relaxed = without_quotes(form.q) if not answer.hits and phrases_of(form.q) else ""
    return [query for query in (corrected, relaxed) if query not in ("", form.q)]


def ago(moment: str) -> str:
    """An ISO time as an age; any other text unchanged."""
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    seconds = (datetime.now(UTC) - (then if then.tzinfo else then.replace(tzinfo=UTC))).total_seconds()
    for size, noun in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{counted(number, noun)} ago"
    return "just now"
