"""Regular expressions that match the same in every Python version."""

import sys

_HAS_POSSESSIVE_GROUPS = sys.version_info >= (3, 11, 5)


def possessive(pattern: str, often: str = "*") -> str:
    """Repeats the pattern as often as it matches, without backtracking.

    Before Python 3.11.5 possessive groups matched wrongly; atomic groups match the same text but need more memory.
    """
    return f"(?:{pattern}){often}+" if _HAS_POSSESSIVE_GROUPS else f"(?>(?:{pattern}){often})"
