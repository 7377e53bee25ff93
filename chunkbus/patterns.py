"""Parts of regular expressions that mean the same in every Python."""

import sys

_HAS_POSSESSIVE_GROUPS = sys.version_info >= (3, 11, 5)


def possessive(pattern: str, often: str = "*") -> str:
    """Repeats the pattern as often as it matches and never gives a match back.

    Before Python 3.11.5 possessive groups find other ends; atomic ones find the same, and remember every repetition.
    """
    return f"(?:{pattern}){often}+" if _HAS_POSSESSIVE_GROUPS else f"(?>(?:{pattern}){often})"
