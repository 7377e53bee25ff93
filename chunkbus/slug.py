"""The anchor of a heading in Markdown viewers: its letters, digits, underscores and hyphens, with spaces as hyphens."""

import re

_LEFT_OUT = re.compile(r"[^\w\- ]")


def slug_of(heading: str) -> str:
    """The anchor of the first heading with this text; viewers number the later ones (`fixed-1`)."""
    return _LEFT_OUT.sub("", heading.strip().lower()).replace(" ", "-")
