"""Parts of regular expressions: letters of all scripts, and repetitions that are the same in every Python version."""

import sys

INDIC_SIGN = r"(?!\w)[\u0900-\u0963\u0966-\u0dff]"
r"""Vowel signs and similar marks of Indic scripts. They are parts of words, but `\w` does not match them. The
lookahead excludes letters: if an expression that repeats letters and signs could match a letter in two ways, matching
could take forever."""
LETTER = rf"(?:[^\W_]|{INDIC_SIGN})"
"""A letter, vowel sign or digit."""
# Scripts without spaces between words (Thai, Lao, Tibetan, Myanmar, Khmer, Kana, Han), and Hangul, where particles are
# attached to words.
SPACELESS = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3031-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U000323af"
)
_HAS_POSSESSIVE_GROUPS = sys.version_info >= (3, 11, 5)


def possessive(pattern: str, quantifier: str = "*") -> str:
    """Repeats the pattern as often as it matches, without backtracking.

    Before Python 3.11.5 possessive groups matched wrongly; atomic groups match the same text but need more memory.
    """
    return f"(?:{pattern}){quantifier}+" if _HAS_POSSESSIVE_GROUPS else f"(?>(?:{pattern}){quantifier})"
