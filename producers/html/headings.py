"""Headings say their words, and nothing but their words."""

import re

from chunksink.producers.html.marks import BACKSLASH
from chunksink.producers.html.tags import CODE, HEADINGS, Element, drop, text_of

_SIGNS = frozenset(("", "¶", "#", "§", "🔗", "⚓", "∞", "🔖", "[#]", "(#)", "[¶]", "[link]"))
_WORDS = re.compile(
    r"(?:permalink|permanent link|link to this (?:\w+)|(?:permalink|permanent link|direct link|anchor) (?:to|for)\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_MOST_CHARACTERS = 300
_CLASSES = re.compile(
    r"(?:^|[\s_-])(?:headerlink|permalink|header-?anchor|heading-?anchor|anchor-?link|hash-?link|self-?link|doc-anchor|"
    r"anchor|mark)(?:$|[\s_-])"
)
_EDIT = "mw-editsection"
# Icon fonts have theirs among the private characters; the others have no width.
_NOT_SEEN = re.compile(r"[\s\u200b-\u200d\u2060\ufeff\ufe0e\ufe0f\ue000-\uf8ff]+")
# What would be read as marks: code, emphasis, a link, a tag, a character by its name, attributes.
_MARKS = re.compile(
    r"`|\*(?=\S)|(?<=\S)\*|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[])|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\{(?=:?[ \t]*[#.])"
)


def drop_edit_links(root: Element) -> None:
    """What wikis put into or beside a heading for those who write it: `[edit]`, in any language."""
    for part in list(root.iter("span", "div")):
        if _EDIT in part.get("class", "").split():
            _drop(part)


def drop_permalinks(root: Element) -> None:
    """A heading's link to itself goes where it shows a sign or says that it is one; a heading's only text stays."""
    words_of: dict[Element, str] = {}
    for link in list(root.iter("a")):
        sign = sign_of(link)
        if sign is None:
            continue
        heading = next(link.iterancestors(*HEADINGS), None)
        if heading is None:
            if _CLASSES.search(link.get("class", "")):
                _drop(link)
            continue
        words = words_of.get(heading)
        if words is None:
            words = _shown(text_of(heading))
        if words != sign and (words.startswith(sign) or words.endswith(sign)):
            _drop(link)
            words = words.removesuffix(sign) if words.endswith(sign) else words.removeprefix(sign)
        words_of[heading] = words.strip()


def sign_of(link: Element) -> str | None:
    """What a link into its own page shows, where that is a sign or says so; None where it is another link."""
    if "#" not in link.get("href", ""):
        return None
    text = text_of(link)
    if len(text) > _MOST_CHARACTERS:
        return None
    shown = _shown(text)
    if shown not in _SIGNS and not _WORDS.fullmatch(shown):
        return None
    return shown if shown or link.find(".//img") is None else None


def _drop(link: Element) -> None:
    """What it stood between may be two words."""
    link.tail = f" {link.tail or ''}"
    drop(link)


def _shown(text: str) -> str:
    return _NOT_SEEN.sub(" ", text).strip()


def mark_signs(root: Element) -> None:
    """Signs in headings that Markdown would take for its own: `__init__` is no emphasis, `impl<T>` has no tag."""
    for heading in root.iter(*HEADINGS):
        code = {inside for outer in heading.iter(*CODE) for inside in outer.iter()}
        for element in heading.iter():
            if element.text and element not in code:
                element.text = _MARKS.sub(_escaped, element.text)
            if element.tail and element is not heading and element.getparent() not in code:
                element.tail = _MARKS.sub(_escaped, element.tail)


def _escaped(sign: re.Match[str]) -> str:
    return BACKSLASH + sign[0]
