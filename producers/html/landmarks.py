"""The parts of a page that are of its site and not of the document: where else to go, whose it is, where to search,
what it asks its visitors.

They are the same on hundreds of pages, and would be found before what the pages say. Nothing is guessed: a page names
them itself, by an element or a role; what mdBook adds to each page of its own has an id. `<header>` and `<footer>` are
such parts of a page only, and no part of an article's or a quote's (HTML Accessibility API Mappings). Where a page has
nothing else, all of it stays.
"""

from chunksink.producers.html.tags import HEADINGS, Element, inside_of

_ROLES = frozenset(
    (
        "navigation",
        "search",
        "banner",
        "contentinfo",
        "menu",
        "menubar",
        "dialog",
        "alertdialog",
        "doc-toc",
        "doc-pagelist",
    )
)
_ELEMENTS = ("nav", "search")
_HELP = ("mdbook-help-container",)
"""Of programs that give each page a help of their own, without a role: its id."""
_OF_THE_PAGE = ("header", "footer")
_WITHIN = ("article", "aside", "main", "nav", "section", "blockquote", "details", "dialog", "fieldset", "figure", "td")


def empty_landmarks(root: Element) -> bool:
    """Whether anything that a reader sees has gone with them."""
    found = [element for element in root.iter() if _is_of_the_site(element)]
    body = next(root.iter("body"), None)
    if body is None or not found:
        return False
    within = {inner for element in found for inner in element.iter()}
    if not _says_anything(body, within):
        return False
    said = any(text.strip() for element in found for text in element.itertext())
    for element in found:
        element.clear(keep_tail=True)
        element.tail = f" {element.tail or ''}"  # it has parted words
    return said


def _is_of_the_site(element: Element) -> bool:
    if element.tag in ("html", "body"):
        return False
    if element.get("id") in _HELP:
        return True
    role = (element.get("role") or "").lower().split()
    if role:
        is_part = role[0] in _ROLES
    elif element.tag in _OF_THE_PAGE:
        is_part = next(element.iterancestors(*_WITHIN), None) is None
    else:
        is_part = element.tag in _ELEMENTS
    # The document's own title may stand in the head of the page, and itself in a dialog.
    return is_part and next(element.iter("h1", "article", "main"), None) is None


def _says_anything(body: Element, within: set[Element]) -> bool:
    """Whether there is text outside of these, besides headings."""
    unread = within | inside_of(body, *HEADINGS)
    return any(
        (element not in unread and (element.text or "").strip())
        or (element is not body and element.getparent() not in unread and (element.tail or "").strip())
        for element in body.iter()
    )
