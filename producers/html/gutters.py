"""Numbers beside lines of code, as highlighters of code write them: nobody's words, and between the lines of others.

They are told by the name that the page gives them, and only where nothing but numbers is in them.
"""

import re

from producers.html.tags import Element, drop, text_of

# Of Pygments, Rouge, Hexo, Chroma of Hugo, highlight.js and others. A `pre` of this name is the code itself.
_NAMED = re.compile(
    r"(?:\A|[\s_-])(?:line-?no(?:s|div)?|line-?numbers?|(?:rouge-)?gutter|hljs-ln-numbers|lnt?|lntd)(?:\Z|\s)",
    re.IGNORECASE,
)
_HOLDERS = ("td", "th", "div", "span", "a")
_NUMBERS = re.compile(r"[\d\s]*")


def drop_line_numbers(root: Element) -> None:
    for element in list(root.iter(*_HOLDERS)):
        name = element.get("class")
        if name and _NAMED.search(name) and element.getparent() is not None and _NUMBERS.fullmatch(text_of(element)):
            drop(element)
