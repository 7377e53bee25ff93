"""Blocks come out of what is written between marks: `<b><h2>` is a heading, not bold text with number signs in it."""

from chunksink.producers.html.tags import (
    BLOCKS,
    CAPTIONS,
    HEADINGS,
    HOLDERS,
    STRUCK,
    STRUCTURE,
    Element,
    drop,
    holders_of,
    inside_of,
    put_after,
    text_of,
)

_PARAGRAPHS = ("p", "li", "dt", "dd", "div", "figcaption", "td")


def part_blocks(root: Element) -> None:
    """Every block stands where Markdown can say what it is."""
    _move_buttons(root)
    literal = inside_of(root, "pre")
    for element in holders_of(root, BLOCKS, literal):
        if element.tag not in HOLDERS:
            element.tag = "div"
    for element in list(root.iter(*STRUCK)):  # `~~` beside another tilde begins code
        if text_of(element).strip().startswith("~") or next(element.iterancestors(*STRUCK), None) is not None:
            element.tag = "span"
    for label in list(root.iter("label")):  # the converter takes the spaces off its ends, which part words
        label.tag = "span"
    for term in list(root.iter("dt")):  # the converter begins no line for a term, which the end of a tag may part
        term.tag = "dd"
    structured = holders_of(root, STRUCTURE, literal)
    for link in list(root.iter("a")):
        if link in structured:
            _hand_on(link, structured)
    for caption in list(root.iter(*CAPTIONS)):
        if caption in structured:
            _set_beside(caption)
    for heading in reversed(list(root.iter(*HEADINGS))):  # so that each moves what follows only up to the next one
        if heading.getparent().tag == "pre":
            _part_code(heading)
        elif heading in structured:
            _part_heading(heading, structured)


def _move_buttons(root: Element) -> None:
    """A button in code or in a heading comes after it. A heading of nothing but buttons keeps them."""
    has_words: dict[Element, bool] = {}
    for button in reversed(list(root.iter("button"))):
        holder = next(button.iterancestors("pre", *HEADINGS), None)
        if holder is None:
            continue
        if holder not in has_words:
            beside = "".join(holder.xpath(".//text()[not(ancestor::button)]"))
            has_words[holder] = holder.tag == "pre" or any(map(str.isalpha, beside))
        if has_words[holder]:
            if holder.tag != "pre":
                button.tail = f" {button.tail or ''}"
            drop(button)
            button.tag = "div"
            put_after(button, holder)


def _hand_on(link: Element, structured: set[Element]) -> None:
    """A link around blocks leads on from the heading in it, else from the first of its paragraphs."""
    if link.get("href"):
        inner = link.makeelement("a", dict(link.attrib))
        paragraphs = (element for element in link.iter(*_PARAGRAPHS) if element not in structured)
        target = next(link.iter(*HEADINGS), None)
        if target is None:
            target = next((element for element in paragraphs if text_of(element).strip()), None)
        if target is None:
            inner.tail, link.text = link.text, None
            link.insert(0, inner)
        else:
            inner.text, target.text = target.text, None
            inner.extend(list(target))
            target.append(inner)
    link.tag = "div"


def _set_beside(caption: Element) -> None:
    """A caption that holds blocks becomes one; a table's stands before the table then."""
    table = caption.getparent()
    if caption.tag == "caption" and table.tag == "table":
        table.addprevious(caption)
    caption.tag = "div"


def _part_code(heading: Element) -> None:
    """Manual pages stand in one `pre` as a whole: its headings part it."""
    code = heading.getparent()
    rest = code.makeelement("pre")
    rest.text, heading.tail = heading.tail, None
    rest.extend(list(heading.itersiblings()))
    put_after(rest, code)
    put_after(heading, code)


def _part_heading(heading: Element, structured: set[Element]) -> None:
    """A heading ends where a block begins in it. One that begins with a list or code is a heading all the same."""
    for child in heading:
        if child in structured or child.tag in STRUCTURE:
            rest = heading.makeelement("div")
            rest.extend([child, *child.itersiblings()])
            if text_of(heading).strip() or next(rest.iter(*HEADINGS), None) is not None:
                put_after(rest, heading)
            else:
                heading.extend(list(rest))
                for code in list(heading.iter("pre")):
                    code.tag = "code"
            return
