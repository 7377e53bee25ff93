"""Formats counts, sizes, long lists and untrusted names the same way in every message."""

from collections.abc import Mapping, Sequence

# Soft hyphen, zero width space, non-joiner and joiner, word joiner: invisible, and needed by scripts and emoji.
_HARMLESS = frozenset("\u00ad\u200b\u200c\u200d\u2060")


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def counts(numbers: Mapping[str, int], noun: str = "") -> str:
    """`3 sources added, 1 source changed`, without zeros."""
    return ", ".join(
        f"{counted(number, noun) if noun else f'{number:,}'} {what}" for what, number in numbers.items() if number
    )


def some(names: Sequence[str], limit: int | None, *, total: int | None = None) -> str:
    """The first `limit` names on one line, and how many more there are. None shows all.

    `total` is the number of all names if `names` has only some of them.
    """
    return " and ".join([", ".join(names[:limit]), *more(len(names) if total is None else total, limit)])


def more(number: int, limit: int | None, rest: str = "") -> list[str]:
    """`12 more`, if `limit` is less than `number`."""
    return [] if limit is None or number <= limit else [f"{number - limit:,} more{rest}"]


def sized(size: float) -> str:
    """A number of bytes in a readable unit, such as `1.5 MB`."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"


def named(source: str) -> str:
    """The name of a source, safe for a terminal. Documents of other programs may have none."""
    return printable(source) or "(documents that name no source)"


def printable(text: str) -> str:
    """A name, safe for a terminal: characters that move the cursor or change the text direction are escaped."""
    return "".join(char if char.isprintable() or char in _HARMLESS else repr(char)[1:-1] for char in text)


def encodable(text: str) -> str:
    """The text with escapes for what UTF-8 cannot encode. File names may have such characters."""
    return text.encode(errors="backslashreplace").decode()
