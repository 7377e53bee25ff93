"""Which families go because the file that they came from does not say them any more.

Only that file has a word in this, and only where it was read whole, without a failure. A document goes with its text,
and a part of a recording with what it is a part of: both are the file itself. A record is a source of its own: it goes
where the file says that nothing is in it; where the file is silent about it, it stays until it is pruned.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from chunksink.producers.families import Family
from chunksink.producers.shelves import Shelves

_PART = re.compile(r"&part=\d+\Z")


class Gone:
    """Asked about each file that was read whole, by this run or by the one that it is unchanged since."""

    def __init__(self, shelves: Shelves, tenant: str | None) -> None:
        self._shelves, self._tenant = shelves, tenant

    def goes(self, uri: str, gives: Callable[[str], bool], emptied: Iterable[str] = ()) -> Iterator[str]:
        """Keys of what goes, now that it is known which families the file gives."""
        for key in emptied:
            family = self._shelves.find(key)
            if family is not None and family.origin == uri and not gives(key):
                yield key
        for family in self.came_from(uri):
            if self._is_the_file(family) and not gives(family.key):
                yield family.key

    def came_from(self, uri: str) -> Iterator[Family]:
        """What stands of a file, whoever's it is."""
        return self._shelves.families.came_from(uri)

    def _is_the_file(self, family: Family) -> bool:
        return family.tenant == self._tenant and (
            family.name == family.origin
            or (family.name.startswith(f"{family.origin}#") and _PART.search(family.name) is not None)
        )
