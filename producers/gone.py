"""Which families go because the file that they came from does not say them any more.

Only that file has a word in this, and only where it was read whole, without a failure. A document goes with its text,
and a part of a recording with what it is a part of: both are the file itself. A record is a source of its own: it goes
where the file says that nothing is in it; where the file is silent about it, it stays until it is pruned.
"""

from collections.abc import Collection, Iterator, Mapping

from producers.families import Family, key_of_source
from producers.shelves import Shelves


class Gone:
    """Shown each file that was read whole, by this run or by the one that it is unchanged since."""

    def __init__(self, shelves: Shelves, tenant: str | None) -> None:
        self._shelves, self._tenant = shelves, tenant
        self._by_origin: dict[str, list[Family]] = {}
        """But for documents of this tenant, which are most and are found by their key."""
        for family in shelves.families():
            if family.origin is not None and not self._is_document(family):
                self._by_origin.setdefault(family.origin, []).append(family)
        self._read: set[str] = set()
        self._keys: set[str] = set()

    def note(self, uri: str, gives: Collection[str], emptied: Collection[str] = ()) -> list[str]:
        """Keys of what goes, now that it is known which families the file gives."""
        self._read.add(uri)
        gives, emptied = frozenset(gives), frozenset(emptied)
        missing = (family for family in self.came_from(uri) if family.key not in gives)
        goes = [family.key for family in missing if family.key in emptied or self._is_the_file(family)]
        self._keys.update(goes)
        return goes

    def _is_document(self, family: Family) -> bool:
        return family.name == family.origin and family.key == key_of_source(family.name, self._tenant)

    def came_from(self, uri: str) -> Iterator[Family]:
        """What stands of a file."""
        document = self._shelves.find(key_of_source(uri, self._tenant))
        if document is not None and document.origin == uri and self._is_document(document):
            yield document
        yield from self._by_origin.get(uri, ())

    def _is_the_file(self, family: Family) -> bool:
        return family.tenant == self._tenant and (
            family.name == family.origin or family.name.startswith(f"{family.origin}#")
        )

    def keys(self, claimed: Mapping[str, object]) -> set[str]:
        """What goes, but for what another file of the run gives."""
        return self._keys - claimed.keys()

    def was_read(self, origin: str | None) -> bool:
        return origin in self._read
