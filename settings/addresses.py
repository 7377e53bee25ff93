"""Addresses that people set: what a client would stumble over later, with an error of its own, is told apart here."""

from urllib.parse import SplitResult, urlsplit


def address_parts(url: str) -> SplitResult | None:
    """None of what no client can use. Whoever refuses it does not repeat it: it may hold a password."""
    import httpx  # takes a moment, and few commands need it

    try:
        httpx.URL(url)
        parts = urlsplit(url)
        _ = parts.port  # raises where it is none
        (parts.hostname or "").encode("idna")  # as it is looked up
    except (ValueError, httpx.InvalidURL):
        return None
    return parts if url.split() == [url] else None
