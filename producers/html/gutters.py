"""Numbers beside lines of code, as highlighters of code write them: nobody's words, and between the lines of others.

They are told by the name that the page gives them, in code or in a row or block that holds some, and only where
nothing but numbers is in them.
"""

import re

from chunksink.producers.html.tags import Element, drop, holders_of, inside_of, text_of

# Of Pygments, Rouge, Hexo, Chroma of Hugo, highlight.js and others. A `pre` of this name is the code itself.
_NAMED = re.compile(
    r"(?:\A|[\s_-])(?:line-?no(?:s|div)?|line-?numbers?|(?:rouge-)?gutter|hljs-ln-numbers|lnt?|lntd)(?:\Z|\s)",
    re.IGNORECASE,
)
_CELLS = ("td", "th")
_NUMBERS = re.compile(r"\s*\d[\d\s]*")


def drop_line_numbers(root: Element) -> None:
    found = [element for element in root.iter(*_CELLS, "div", "span", "a") if _is_named_so(element)]
    if not found:
        return
    code, holders = inside_of(root, "pre", "code"), holders_of(root, ["pre"])
    for element in found:
        beside = element.getparent() if element.tag in _CELLS else element
        is_of_code = element in code or beside in holders
        if is_of_code and _NUMBERS.fullmatch(text_of(element)) and next(element.iter("img"), None) is None:
            drop(element)


def _is_named_so(element: Element) -> bool:
    name = element.get("class")
    return bool(name and _NAMED.search(name))
