"""Texts that are shown in part: whole words, where the one that would be cut through is no giant. A line of Chinese is
one."""


def beginning(text: str, most: int) -> str:
    """Up to so many characters of it."""
    if len(text) <= most:
        return text
    start = text[:most]
    words = start.rpartition(" ")[0]
    return f"{words} …" if len(words) > most // 2 else f"{start}…"


def ending(text: str, most: int) -> str:
    """Its last characters, up to so many."""
    if len(text) <= most:
        return text
    end = text[-most:]
    words = end.partition(" ")[2]
    return f"… {words}" if len(words) > most // 2 else f"…{end}"
