"""Parts of regular expressions: letters of all scripts, and repetitions that are the same in every Python version."""

import sys

INDIC_SIGN = r"(?!\w)[\u0900-\u0963\u0966-\u0dff]"
r"""Vowel signs and similar marks of Indic scripts. They are parts of words, but `\w` does not match them. The
lookahead excludes letters: if an expression that repeats letters and signs could match a letter in two ways, matching
could take forever."""
LETTER = rf"(?:[^\W_]|{INDIC_SIGN})"
"""A letter, vowel sign or digit."""
_HAS_POSSESSIVE_GROUPS = sys.version_info >= (3, 11, 5)


def possessive(pattern: str, quantifier: str = "*") -> str:
    """Repeats the pattern as often as it matches, without backtracking.

    Before Python 3.11.5 possessive groups matched wrongly; atomic groups match the same text but need more memory.
    """
    return f"(?:{pattern}){quantifier}+" if _HAS_POSSESSIVE_GROUPS else f"(?>(?:{pattern}){quantifier})"
