"""Signs that stand for something else on the way from a page to Markdown.

They are no characters of any text: whatever reads a page or a DOCX takes them out of it first.
"""

import re

BACKSLASH = "\ufdd0"
"""One that shall stand in the Markdown: as itself the converter would escape it."""
IN_TURN = "\ufdd1"
"""After the number of an item whose list is written in the other way."""
NUMBER, NUMBER_END = "\ufdd2", "\ufdd3"
"""Around the number that Word shows before a paragraph."""
FILE, FILE_END = "\ufdd4", "\ufdd5"
"""Around the number of a file that a DOCX brings in."""
NOTE, NOTE_END = "\ufdd6", "\ufdd7"
"""Around the number of what is noted beside the words."""

_ANY = re.compile("[\ufdd0-\ufdd7]")


def without_marks(text: str) -> str:
    return text if text.isascii() else _ANY.sub("", text)
