"""Parts of regular expressions: letters of all scripts, and repetitions that are the same in every Python version."""

import sys
import unicodedata

VOWEL_SIGNS = "".join(sign for sign in map(chr, range(0x900, 0xE00)) if unicodedata.category(sign).startswith("M"))
r"""Vowel signs and the like of the scripts of India and Sri Lanka. They are parts of words, but not in `\w`."""
INDIC_SIGN = r"(?!\w)[\u0900-\u0963\u0966-\u0dff]"
"""All signs of these scripts but letters, digits and full stops. Together with letters it must match a text in one way
only: else an expression that repeats both may take forever."""
LETTER = rf"(?:[^\W_]|{INDIC_SIGN})"
"""A letter, vowel sign or digit."""
_HAS_POSSESSIVE_GROUPS = sys.version_info >= (3, 11, 5)


def possessive(pattern: str, often: str = "*") -> str:
    """Repeats the pattern as often as it matches, without backtracking.

    Before Python 3.11.5 possessive groups matched wrongly; atomic groups match the same text but need more memory.
    """
    return f"(?:{pattern}){often}+" if _HAS_POSSESSIVE_GROUPS else f"(?>(?:{pattern}){often})"
