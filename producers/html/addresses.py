"""Addresses of links and pictures, as the page writes them.

The converter writes characters beyond ASCII as percent signs and numbers; so each travels as its number between marks
that it lets pass, and is put back in the Markdown.
"""

import re
from collections.abc import Callable, Iterable
from html import unescape
from urllib.parse import urljoin, urlsplit

from producers.html.tags import Element
from producers.markdown.document import Link

_NAMES = ("href", "src", "cite", "data")
_SHOWN = ("alt", "title")
_MARK = "\x7f"  # which no page has any more
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_MARKED = re.compile(rf"{_MARK}([0-9a-f]{{1,6}}){_MARK}")
# Browsers take them out of an address, and white space off its ends.
_NOT_IN_ADDRESS = re.compile(r"[\t\n\r]")
_WRITTEN_OUT = re.compile(r"https?://|mailto:", re.IGNORECASE)

CodeLinks = tuple[tuple[str, str], ...]


def link_what_is_shown(root: Element) -> None:
    """Areas of a picture and frames lead somewhere, and Markdown has nothing for them but links."""
    for element in list(root.iter("area", "frame")):
        address = element.get("href" if element.tag == "area" else "src")
        words = element.get("alt") or element.get("title") or element.get("name") or ""
        tail = element.tail
        element.clear()
        element.tag, element.text, element.tail = "span", words, f" {tail or ''}"
        if address:
            element.tag = "a"
            element.set("href", address)
    for frames in list(root.iter("frameset")):
        frames.tag = "div"


def take_addresses(root: Element, code_links: CodeLinks) -> tuple[frozenset[str], CodeLinks]:
    """Makes all addresses those that browsers would go to, and tells them; the same for the links of code."""
    resolve = _resolver(root)
    found: set[str] = set()
    for element in root.iter():
        for name in _NAMES:
            address = element.get(name)
            if address:
                address = resolve(address)
                found.add(_key(address))
                element.set(name, _BEYOND_ASCII.sub(lambda sign: f"{_MARK}{ord(sign[0]):x}{_MARK}", address))
        for name in _SHOWN:
            words = element.get(name, "")
            if "\n" in words:
                element.set(name, " ".join(words.split()))
    return frozenset(found), tuple((line, resolve(address)) for line, address in code_links)


def put_back(content: str) -> str:
    return _MARKED.sub(lambda sign: chr(int(sign[1], 16)), content)


def of_the_page(links: Iterable[Link], addresses: frozenset[str]) -> tuple[Link, ...]:
    """Without those that only look like links: a page about Markdown shows `[text](address)` as text."""
    return tuple(link for link in links if _key(link.url) in addresses or _WRITTEN_OUT.match(link.url))


def _resolver(root: Element) -> Callable[[str], str]:
    base = next((element.get("href").strip() for element in root.iter("base") if element.get("href")), "")

    def resolve(address: str) -> str:
        address = _NOT_IN_ADDRESS.sub("", address.strip(" \t\n\r\f"))
        try:
            return _join(base, address) if base and address else address
        except ValueError:  # a host in brackets that is none
            return address

    return resolve


def _join(base: str, address: str) -> str:
    """`urljoin` takes the `..` off a base that is itself relative to the page."""
    if urlsplit(base).scheme or base.startswith("/"):
        return urljoin(base, address)
    if urlsplit(address).scheme or address.startswith("/"):
        return address
    return (re.split("[?#]", base, maxsplit=1)[0] if address[0] in "?#" else base[: base.rfind("/") + 1]) + address


def _key(address: str) -> str:
    """The same for whatever Markdown has escaped in it and whatever it has not."""
    return unescape(address).replace("\\", "")
