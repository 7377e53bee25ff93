"""The storage format of Confluence: what stands in its own elements becomes HTML."""

from typing import Any
from urllib.parse import urlencode

from chunksink.producers.html.tags import Element, drop, text_of

_CODE = "ac:plain-text-body"
_SAID_OF_CODE = ("title", "")


def read_storage(root: Element) -> None:
    """Code, links and pictures; other elements of it are read as any that HTML does not know."""
    for body in list(root.iter(_CODE)):
        _read_code(body)
    for link in list(root.iter("ac:link")):
        _read_link(link)
    for image in list(root.iter("ac:image")):
        _read_image(image)


def _read_code(body: Element) -> None:
    """Its macro names the language; how it is shown (theme, numbers of lines) says nothing."""
    for parameter in list(body.itersiblings("ac:parameter", preceding=True)):
        name = parameter.get("ac:name", "")
        if name == "language":
            body.set("class", f"language-{text_of(parameter).strip()}")
        if name in _SAID_OF_CODE:
            parameter.tag = "p"
        else:
            drop(parameter)
    body.tag = "pre"


def _read_link(link: Element) -> None:
    page = next(link.iter("ri:page"), None)
    target = page if page is not None else next(link.iter("ri:attachment"), None)
    if target is None:
        return
    title = target.get("ri:content-title") or target.get("ri:filename") or ""
    if not text_of(link).strip():
        link.text = title
    if page is not None:
        said: dict[str, Any] = {"spaceKey": page.get("ri:space-key"), "title": title}
        anchor = link.get("ac:anchor")
        query = urlencode({name: value for name, value in said.items() if value})
        link.tag = "a"
        link.set("href", f"/pages/viewpage.action?{query}{f'#{anchor}' if anchor else ''}")


def _read_image(image: Element) -> None:
    for target in image.iter("ri:attachment", "ri:url"):
        address = target.get("ri:filename") or target.get("ri:value") or ""
        shown = image.makeelement("img", {"src": address, "alt": image.get("ac:alt", "")})
        image.insert(0, shown)
        return
