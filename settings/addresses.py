"""Addresses of servers that people set."""

from urllib.parse import SplitResult, urlsplit


def server_address(url: str) -> SplitResult | None:
    """The parts of `http://HOST:PORT/PATH`, or https. None for everything else, also for an address with a user, a
    password, parameters or a fragment: these may be secrets, and addresses are printed. The caller must not repeat a
    refused address."""
    import httpx  # takes a moment, and few commands need it

    try:
        httpx.URL(url)
        parts = urlsplit(url)
        port = parts.port  # raises where it is none
        (parts.hostname or "").encode("idna")  # as it is looked up
    except (ValueError, httpx.InvalidURL):
        return None
    is_plain = url.split() == [url] and not any(sign in url for sign in "@?#")
    return parts if is_plain and parts.scheme in ("http", "https") and parts.hostname and port != 0 else None
