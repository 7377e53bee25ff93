"""The anchor that Markdown viewers give a heading: its letters, digits, hyphens and spaces, the latter as hyphens."""

import re

_LEFT_OUT = re.compile(r"[^\w\- ]")


def slug_of(heading: str) -> str:
    """Of the first heading of these words; viewers number the others (`fixed-1`)."""
    return _LEFT_OUT.sub("", heading.strip().lower()).replace(" ", "-")
