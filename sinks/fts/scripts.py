"""Scripts that put no space between words, whose texts have trigrams, and all others, whose words FTS5 finds itself."""

import re

# Scripts whose words stand side by side (Thai, Lao, Tibetan, Myanmar, Khmer, Kana, Han), and Hangul, whose words carry
# their particles with them.
_SPACELESS = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3031-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U000323af"
)
RUN = re.compile(f"[{_SPACELESS}]+")
SPACED = rf"[^\W_{_SPACELESS}]"
"""A letter or digit of all other scripts: what a word consists of."""
TOKEN = re.compile(f"{SPACED}+|[{_SPACELESS}]+")


def is_spaceless(text: str) -> bool:
    """Whether anything in it is of a script without spaces."""
    return not text.isascii() and RUN.search(text) is not None
