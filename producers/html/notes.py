"""What a page says beside its words: where links and pictures are found, and the ids of headings.

In the Markdown such addresses would be text, to be found, embedded and read by nobody's wish: two fifths of saved web
pages. So each travels as a note, a number between two signs right before the first words that it is about, and is
taken out again where the document's places are known.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from lxml import etree

from chunksink.producers.html.addresses import address_of
from chunksink.producers.html.marks import IN_TURN, NOTE, NOTE_END
from chunksink.producers.html.tags import HEADINGS, Element
from chunksink.producers.markdown.document import Block, Document, Link
from chunksink.producers.markdown.links import LinkKind, classify

_NUMBER = re.compile(f"{NOTE}([0-9]+){NOTE_END}")
_NOTES = re.compile(f"(?:{NOTE}[0-9]*{NOTE_END}?)+")  # a heading that is carried in part may end in one
_BEGINS = re.compile(rf"\s*{IN_TURN}?")
_WRITTEN_OUT = re.compile(r"https?://|mailto:", re.IGNORECASE)


class About(StrEnum):
    LINK = "link"
    LINK_END = "link end"
    PICTURE = "picture"
    PICTURE_END = "picture end"
    SOURCE = "source of a quote"
    HEADING = "heading"


_ENDS = {About.LINK: About.LINK_END, About.PICTURE: About.PICTURE_END}


class Note(NamedTuple):
    about: About
    said: str


@dataclass
class _Notebook:
    """Its notes wait for the words that they are about, or go behind the last ones before a heading."""

    notes: list[Note] = field(default_factory=list)
    _waiting: list[str] = field(default_factory=list)
    _behind: list[str] = field(default_factory=list)
    _last: tuple[Element, bool] | None = None  # the last words, and whether they come after the element

    def add(self, note: Note) -> None:
        self._waiting.append(f"{NOTE}{len(self.notes)}{NOTE_END}")
        self.notes.append(note)

    def read(self, element: Element, *, comes_after: bool) -> None:
        text = element.tail if comes_after else element.text
        if not text or text.isspace() or (element.tag == "title" and not comes_after):
            return
        self.end()
        self._last = element, comes_after
        begin = _BEGINS.match(text)
        self._write(self._waiting, text, begin.end() if begin else 0)

    def close_section(self) -> None:
        if self._last is not None:
            self._behind += self._waiting
            self._waiting.clear()

    def end(self) -> None:
        if self._last is not None:
            element, comes_after = self._last
            text = str(element.tail if comes_after else element.text)
            self._write(self._behind, text, len(text.rstrip()))

    def _write(self, notes: list[str], text: str, at: int) -> None:
        if notes and self._last is not None:
            element, comes_after = self._last
            noted = text[:at] + "".join(notes) + text[at:]
            element.text, element.tail = (element.text, noted) if comes_after else (noted, element.tail)
            notes.clear()


def leave_notes(root: Element, anchors: Mapping[Element, str], resolve: Callable[[str], str]) -> tuple[Note, ...]:
    """Links become their words, pictures what they show, each with a note; so do headings that have an id."""
    book = _Notebook()
    open_notes: list[tuple[Element, About]] = []
    in_code = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if event == "start":
            if element.tag in HEADINGS:
                book.close_section()
            in_code += element.tag == "pre"
            for note in _notes_of(element, anchors, resolve, in_code=in_code > 0):
                book.add(note)
                if note.about in _ENDS:
                    open_notes.append((element, note.about))
        else:
            in_code -= element.tag == "pre"
            while open_notes and open_notes[-1][0] is element:
                book.add(Note(_ENDS[open_notes.pop()[1]], ""))
        book.read(element, comes_after=event == "end")
    book.close_section()
    book.end()
    for element in root.iter("a", "img"):
        element.tag = "span"
        element.attrib.clear()
    return tuple(book.notes)


def take_notes(document: Document, notes: Sequence[Note]) -> Document:
    """The document without them, with the links and anchors that they are about. Of what looks like a link in the
    words themselves only addresses that are written out are links: a page about Markdown shows `[text](address)`."""
    text, place_of = _without(document.text, notes)
    blocks = tuple(
        block._replace(start=place_of(block.start), end=place_of(block.end), detail=_without(block.detail, notes)[0])
        for block in document.blocks
    )
    places = [(note, place_of(place)) for note, place in _places(document.text, notes)]
    written = [Link(_without(link.url, notes)[0], link.kind, place_of(link.at)) for link in document.links]
    return replace(
        document,
        text=text,
        blocks=blocks,
        sections=tuple(tuple(_without(title, notes)[0] for title in headings) for headings in document.sections),
        links=(*_noted(places), *_beside(places, written)),
        metadata={name: _without(value, notes)[0] for name, value in document.metadata.items()},
        anchors=dict(_anchors(blocks, places)),
    )


def _notes_of(
    element: Element, anchors: Mapping[Element, str], resolve: Callable[[str], str], *, in_code: bool
) -> Iterator[Note]:
    """Lines of code that link to themselves lead nowhere."""
    if element in anchors:
        yield Note(About.HEADING, anchors[element])
    if element.tag == "img":
        yield Note(About.PICTURE, resolve(address_of(element)))
    elif element.tag == "a" and element.get("href") and not (in_code and element.get("href").startswith("#")):
        yield Note(About.LINK, resolve(element.get("href")))
    elif element.get("cite"):
        yield Note(About.SOURCE, resolve(element.attrib.pop("cite")))


def _without(text: str, notes: Sequence[Note]) -> tuple[str, Callable[[int], int]]:
    """The text, and where each place in it has come to."""
    parts: list[str] = []
    ends = [0]  # of the notes
    moved = [0]  # by how much what comes after them
    for found in _NOTES.finditer(text):
        start, end = found.span()
        parts.append(text[ends[-1] : start])
        between = " " if _parts_words(text, start, end, notes) else ""
        parts.append(between)
        moved.append(moved[-1] + end - start - len(between))
        ends.append(end)
    parts.append(text[ends[-1] :])

    def place_of(place: int) -> int:
        number = bisect_right(ends, place) - 1
        return place - moved[number]

    return "".join(parts), place_of


def _parts_words(text: str, start: int, end: int, notes: Sequence[Note]) -> bool:
    """Pictures stand apart from words, and from one another links that no text is between."""
    if not (text[max(0, start - 1) : start].isalnum() and text[end : end + 1].isalnum()):
        return False
    abouts = [notes[int(number)].about for number in _NUMBER.findall(text, start, end)]
    if About.PICTURE in abouts or About.PICTURE_END in abouts:
        return True
    return About.LINK_END in abouts and About.LINK in abouts[abouts.index(About.LINK_END) :]


def _places(text: str, notes: Sequence[Note]) -> Iterator[tuple[Note, int]]:
    """Where the words of each begin; of one that is lost, where those before it do."""
    found: dict[int, int] = {}
    for run in _NOTES.finditer(text):
        for number in _NUMBER.findall(run[0]):
            found.setdefault(int(number), run.end())
    place = 0
    for number, note in enumerate(notes):
        place = found.get(number, place)
        yield note, place


def _noted(places: Sequence[tuple[Note, int]]) -> Iterator[Link]:
    for note, place in places:
        if note.said and note.about in (About.LINK, About.SOURCE):
            yield Link(note.said, classify(note.said), place)
        elif note.said and note.about is About.PICTURE:
            yield Link(note.said, LinkKind.IMAGE, place)


def _beside(places: Sequence[tuple[Note, int]], written: Sequence[Link]) -> Iterator[Link]:
    """Addresses that are written out, but for those that a link shows."""
    starts = [place for note, place in places if note.about is About.LINK]
    ends = [place for note, place in places if note.about is About.LINK_END]
    for link in written:
        number = bisect_right(starts, link.at) - 1
        if _WRITTEN_OUT.match(link.url) and (number < 0 or link.at >= ends[number]):
            yield link


def _anchors(blocks: Sequence[Block], places: Sequence[tuple[Note, int]]) -> Iterator[tuple[int, str]]:
    """The ids by sections. A heading that is quoted or listed begins none."""
    starts = [block.start for block in blocks]
    for note, place in places:
        number = bisect_right(starts, place) - 1
        if note.about is About.HEADING and number >= 0:
            block = blocks[number]
            if block.is_heading and block.section != (blocks[number - 1].section if number else 0):
                yield block.section, note.said
