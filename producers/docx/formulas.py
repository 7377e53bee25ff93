"""A formula on one line, as people type it: `(a+b)/2`, `x^2`, `x_(n+1)`. Its letters alone would be another one."""

import re

from chunksink.producers.html.tags import Element

_ONE = re.compile(r"[\w.]+|.|\([^()]*\)")
_DELETED = ("del", "moveFrom")


def on_one_line(formula: Element) -> str:
    name = _local(formula)
    if name == "t":
        return formula.text or ""
    if name in _DELETED:
        return ""
    if name in ("mr", "m", "eqArr"):
        cells = (on_one_line(part) for part in formula if _local(part) in ("e", "mr"))
        return (" " if name == "mr" else "; ").join(cells)
    if name == "d":
        opening, closing, between = (_said(formula, sign) for sign in ("begChr", "endChr", "sepChr"))
        inner = (between or "|").join(on_one_line(part) for part in formula if _local(part) == "e")
        return f"{'(' if opening is None else opening}{inner}{')' if closing is None else closing}"
    said = [(_local(part), on_one_line(part)) for part in formula]  # once each: a formula may be deep
    parts = dict(said)
    if name == "f":
        return f"{_one(parts.get('num', ''))}/{_one(parts.get('den', ''))}"
    if name == "rad":
        return f"√({'&'.join(filter(None, (parts.get('deg'), parts.get('e'))))})"
    if name == "nary":
        sign = _said(formula, "chr")
        return f"{'∫' if sign is None else sign}{_raised(parts)} {parts.get('e', '')} "
    if name in ("sSup", "sSub", "sSubSup", "limLow", "limUpp"):
        return f"{_one(parts.get('e', ''))}{_raised(parts, 'limUpp' if name == 'limUpp' else '')}"
    if name == "func":
        return f"{parts.get('fName', '')} {parts.get('e', '')}"
    return "".join(text for _, text in said)


def _raised(parts: dict[str, str], kind: str = "") -> str:
    above, below = parts.get("sup"), parts.get("sub")
    if "lim" in parts:
        above, below = (parts["lim"], None) if kind == "limUpp" else (None, parts["lim"])
    return (f"_{_one(below)}" if below else "") + (f"^{_one(above)}" if above else "")


def _one(text: str) -> str:
    return text if not text or _ONE.fullmatch(text) else f"({text})"


def _said(formula: Element, name: str) -> str | None:
    """A property of it, which stands in its first child."""
    found = formula.xpath("*[1]/*[local-name() = $name]/@*[local-name() = 'val']", name=name)
    return str(found[0]) if found else None


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]
