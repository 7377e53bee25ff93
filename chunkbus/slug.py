"""The anchor of a heading in Markdown viewers: its letters in lower case, digits, underscores and hyphens, with spaces
as hyphens."""

import unicodedata


def slug_of(heading: str) -> str:
    """The anchor of the first heading with this text. Viewers add a number to later ones: the second `Fixed` gets
    `fixed-1`."""
    return "".join(filter(_is_kept, heading.strip().lower())).replace(" ", "-")


def _is_kept(char: str) -> bool:
    return char.isalnum() or char in "_- " or unicodedata.category(char).startswith("M")  # marks, such as vowel signs
