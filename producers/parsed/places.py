"""Where passages lie in the file that was parsed, and which tables and images they hold."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.producers.markdown.passages import Passage
from chunksink.producers.parsed.render import Stretch


class Places:
    """Stretches and passages of one text, each in order."""

    def __init__(self, stretches: Sequence[Stretch], passages: Sequence[Passage]) -> None:
        self._stretches = stretches
        self._starts = [stretch.start for stretch in stretches]
        self._ends = [stretch.end for stretch in stretches]
        self._said: list[Record] = [{} for _ in passages]
        own_starts = [passage.own_start for passage in passages]
        for stretch in stretches:
            if stretch.fields and passages:
                said = self._said[max(0, bisect_right(own_starts, stretch.start) - 1)]
                if stretch.kind == "table":
                    said["table"] = stretch.fields
                else:
                    said.setdefault("images", []).append(stretch.fields)

    def said(self, index: int) -> Record:
        """What the tables and images of a passage say beside their text; each is told once."""
        return self._said[index]

    def where(self, start: int, end: int) -> Record:
        """The locator of a part of the text: from its first page to its last, the first slide and sheet in it."""
        found: dict[str, list[Any]] = {}
        for number in range(bisect_right(self._ends, start), bisect_left(self._starts, end)):
            for name, value in self._stretches[number].where.items():
                found.setdefault(name, []).append(value)
        locator = {name: values[0] for name, values in found.items()}
        if "page_number" in found:
            locator["page_number"] = min(found["page_number"])
            locator["page_end"] = max(found["page_number"] + found.get("page_end", []))
        for name, choose in (("timestamp_start", min), ("timestamp_end", max)):
            if name in found:
                locator[name] = choose(found[name])
        return locator
