"""Fields of a DOCX, made so that mammoth sees where they lead and what is chosen in them.

It takes all that stands between the first and the last quotation mark of a `HYPERLINK` for its address, switches too,
and passes over links that are written in one element, and over boxes and lists of forms.
"""

import re

from lxml import etree

from chunksink.producers.html.tags import Element

_PART = re.compile(r'"((?:\\.|[^"\\])*)"|(\S+)')
_ESCAPED = re.compile(r"\\([\"\\])")
_LINK = re.compile(r"\s*HYPERLINK\s", re.IGNORECASE)
_WITH_WORDS = ("\\l", "\\o", "\\t")  # switches that another part follows: place, tip, window
TICKED, NOT_TICKED = "☒", "☐"


def write_fields(root: Element, word: str) -> None:
    for field in list(root.iter(f"{word}fldSimple")):
        if _LINK.match(field.get(f"{word}instr", "")):
            _spell_out(field, word)
    _write_links(root, word)
    for form in list(root.iter(f"{word}ffData")):
        _write_form(form, word)
    # The signs are text now, and mammoth would put boxes of HTML in their place.
    for instruction in root.iter(f"{word}instrText"):
        if "FORMCHECKBOX" in (instruction.text or ""):
            instruction.text = None
    for box in list(root.iter("{*}checkbox")):
        box.getparent().remove(box)


def _spell_out(field: Element, word: str) -> None:
    """The same field as three marks, with its instruction and its text between them."""
    for kind in ("begin", "instruction", "separate"):
        run = field.makeelement(f"{word}r")
        if kind == "instruction":
            etree.SubElement(run, f"{word}instrText").text = field.get(f"{word}instr")
        else:
            etree.SubElement(run, f"{word}fldChar").set(f"{word}fldCharType", kind)
        field.addprevious(run)
    for child in list(field):
        field.addprevious(child)
    etree.SubElement(field, f"{word}fldChar").set(f"{word}fldCharType", "end")
    field.tag = f"{word}r"


def _write_links(root: Element, word: str) -> None:
    """The instruction of a field may be parted into many texts."""
    open_fields: list[list[Element]] = []
    for element in root.iter(f"{word}fldChar", f"{word}instrText"):
        kind = element.get(f"{word}fldCharType")
        if kind == "begin":
            open_fields.append([])
        elif open_fields and kind is None:
            open_fields[-1].append(element)
        elif open_fields:
            texts = open_fields.pop() if kind == "end" else open_fields[-1]
            said = "".join(text.text or "" for text in texts)
            if kind == "separate" and _LINK.match(said):
                for text in texts[1:]:
                    text.text = None
                texts[0].text = _link(said)


def _link(said: str) -> str:
    """The instruction with its address alone, or the place in this document."""
    parts = [_ESCAPED.sub(r"\1", part[1]) if part[2] is None else part[2] for part in _PART.finditer(said)]
    address = place = ""
    rest = iter(parts[1:])
    for part in rest:
        if part in _WITH_WORDS:
            words = next(rest, "")
            place = words if part == "\\l" else place
        elif not part.startswith("\\") and not address:
            address = part
    if address and place:
        return f'HYPERLINK "{address}#{place}"'
    if address:
        return f'HYPERLINK "{address}"'
    return f'HYPERLINK \\l "{place}"' if place else said


def _write_form(form: Element, word: str) -> None:
    """A box as it is ticked; of a list what is chosen, where the text does not say it."""
    box, choices = form.find(f"{word}checkBox"), form.find(f"{word}ddList")
    mark = form.getparent()
    shown = ""
    if box is not None:
        state = _said(box, word, "checked", "default")
        shown = NOT_TICKED if state in (None, "0", "false", "off") else TICKED
    elif choices is not None and not _has_text(mark, word):
        entries = [entry.get(f"{word}val", "") for entry in choices.iter(f"{word}listEntry")]
        number = _said(choices, word, "result", "default") or "0"
        shown = entries[int(number)] if number.isdecimal() and int(number) < len(entries) else ""
    if shown:
        text = mark.makeelement(f"{word}t")
        text.text = shown
        mark.addnext(text)


def _said(form: Element, word: str, *names: str) -> str | None:
    """The first of these that it has; without a value that is a yes."""
    found = (form.find(f"{word}{name}") for name in names)
    return next((element.get(f"{word}val", "1") for element in found if element is not None), None)


def _has_text(mark: Element, word: str) -> bool:
    """Between the mark where a field begins and the one where it ends."""
    for run in mark.getparent().itersiblings():
        for element in run.iter(f"{word}fldChar", f"{word}t"):
            if element.get(f"{word}fldCharType") == "end":
                return False
            if element.text:
                return True
    return False
