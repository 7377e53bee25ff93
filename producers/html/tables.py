"""Tables that hold no data but place blocks on the page are taken apart: their cells follow one another as blocks.

A cell of a Markdown table is one line. Code, headings and lists in it would lose what they are.
"""

from dataclasses import dataclass, field

from lxml import etree

from chunksink.producers.html.columns import narrow
from chunksink.producers.html.tags import HEADINGS, LISTS, TABLE_PARTS, Element, text_of

_SECTIONS = ("thead", "tbody", "tfoot")
_CELLS = ("td", "th")
_BLOCKS = (*HEADINGS, *LISTS, "pre", "blockquote")
_STANDS_IN = {
    **dict.fromkeys(_CELLS, ("tr",)),
    **dict.fromkeys((*_SECTIONS, "caption", "colgroup"), ("table",)),
    "tr": ("table", *_SECTIONS),
    "col": ("table", "colgroup"),
}
_HOLDS_PARTS = frozenset(("tr", *_SECTIONS))
# Longer than what people write into a cell of data.
_LONG_CELL = 1000


@dataclass
class _Table:
    element: Element
    parts: list[Element] = field(default_factory=list)
    cells: int = 0
    has_header: bool = False
    has_blocks: bool = False
    is_torn: bool = False  # a cell holds what no cell of Markdown can, be there a header or not
    paragraphs: int = 0  # in the cell that is open; a list is several

    @property
    def is_layout(self) -> bool:
        return self.is_torn or (not self.has_header and (self.has_blocks or self.cells == 1))


def take_apart(root: Element) -> None:
    """Makes blocks of the tables that are layout, and of cells without a table."""
    if next(root.iter("table", *TABLE_PARTS), None) is None:
        return
    tables, loose = _read(root)
    for part in loose:
        part.tag = "div"
    for table in tables:
        if table.is_layout:
            table.element.tag = "div"
            for part in table.parts:
                part.tag = "div"
                part.attrib.clear()
        else:
            narrow(table.parts)


def _read(root: Element) -> tuple[list[_Table], list[Element]]:
    """All tables, the inner ones too, and the parts of none."""
    tables: list[_Table] = []
    loose: list[Element] = []
    around: list[_Table] = []
    for event, element in etree.iterwalk(root, events=("start", "end"), tag=("table", "p", *TABLE_PARTS, *_BLOCKS)):
        if element.tag == "table":
            if event == "start":
                tables.append(_Table(element, is_torn=_has_others(element)))
                _see(around, element)
                around.append(tables[-1])
            else:
                around.pop()
        elif event == "start":
            if not around and element.tag in TABLE_PARTS:
                loose.append(element)
            _see(around, element)
        elif around and element.tag == "td":
            _close_cell(around[-1], element)
    return tables, loose


def _see(around: list[_Table], element: Element) -> None:
    """What an element says of the table that it stands in."""
    if not around:
        return
    table, tag, parent = around[-1], element.tag, element.getparent()
    if tag in TABLE_PARTS:
        table.parts.append(element)
        table.cells += tag in _CELLS
        table.has_header |= tag == "th"
        table.paragraphs = 0
        table.is_torn |= parent.tag not in _STANDS_IN[tag] or _has_text(element.tail)
        table.is_torn |= tag in _HOLDS_PARTS and _has_others(element)
    elif tag in HEADINGS:
        table.has_blocks = True
        table.is_torn |= not any(holder.tag == "th" for holder in element.iterancestors(*_CELLS))
    elif tag == "pre":
        table.is_torn |= "\n" in text_of(element).strip()
    elif tag == "p":
        table.paragraphs += 1
    else:
        table.has_blocks = True
        table.paragraphs += 2


def _close_cell(table: _Table, cell: Element) -> None:
    """Many words in several paragraphs are no datum."""
    if table.paragraphs > 1 and not table.is_layout:
        table.is_torn = len(text_of(cell)) > _LONG_CELL


def _has_others(holder: Element) -> bool:
    """Something stands between its rows or cells that is none."""
    return _has_text(holder.text) or any(child.tag not in TABLE_PARTS for child in holder)


def _has_text(text: str | None) -> bool:
    return bool(text) and not str(text).isspace()
