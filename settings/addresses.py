"""Checks the server addresses in a configuration."""

from urllib.parse import SplitResult, urlsplit


def may_contain_secret(url: str) -> bool:
    """Whether a URL has a user, a password, parameters or a fragment."""
    return any(char in url for char in "@?#")


def server_address(url: str) -> SplitResult | None:
    """The parts of an http or https URL; None for anything else.

    URLs with a user, a password, parameters or a fragment are refused too: these may be secrets, and addresses are
    printed. For the same reason the caller must not print a refused address.
    """
    import httpx  # slow to import, and few commands need it

    try:
        httpx.URL(url)
        parts = urlsplit(url)
        port = parts.port  # raises if it is not a port number
        (parts.hostname or "").encode("idna")  # raises if DNS cannot represent the name
    except (ValueError, httpx.InvalidURL):
        return None
    is_plain = url.split() == [url] and not may_contain_secret(url)
    return parts if is_plain and parts.scheme in ("http", "https") and parts.hostname and port != 0 else None
