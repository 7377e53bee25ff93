"""What leads somewhere, and where: addresses are those that browsers would go to."""

import re
from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

from chunksink.producers.html.tags import Element
from chunksink.producers.markdown.embedded import is_embedded

# Browsers take them out of an address, and white space off its ends.
_NOT_IN_ADDRESS = re.compile(r"[\t\n\r]")

_LATE = ("data-src", "data-original", "data-lazy-src")
_SETS = ("srcset", "data-srcset")


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


def address_of(picture: Element) -> str:
    """Pages that load their pictures late have another at first, or none."""
    address: str = picture.get("src", "")
    if address and not is_embedded(address.strip()):
        return address
    sets = (picture.get(name, "").split() for name in _SETS)
    late = (picture.get(name, "") for name in _LATE)
    return next(filter(None, (*late, *(addresses[0] for addresses in sets if addresses))), address)


def describe_pictures(root: Element) -> None:
    """What is said of a picture becomes its text."""
    for picture in root.iter("img"):
        picture.text = " ".join(picture.get("alt", "").split())


def resolver(root: Element) -> Callable[[str], str]:
    """Makes an address that the page writes one from where it says that links begin."""
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
