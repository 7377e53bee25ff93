"""Which families go because the file that they came from does not say them any more.

Only that file has a word in this, and only where it was read whole, without a failure. A document goes with its text,
and a part of a recording with what it is a part of: both are the file itself. A record is a source of its own: it goes
where the file says that nothing is in it; where the file is silent about it, it stays until it is pruned.
"""

from collections.abc import Collection, Iterable, Mapping

from producers.families import Family


class Gone:
    """Shown each file that was read whole, by this run or by the one that it is unchanged since."""

    def __init__(self, standing: Iterable[Family], tenant: str | None) -> None:
        self._tenant = tenant
        self._by_origin: dict[str, list[Family]] = {}
        for family in standing:
            if family.origin is not None:
                self._by_origin.setdefault(family.origin, []).append(family)
        self._read: set[str] = set()
        self._keys: set[str] = set()

    def note(self, uri: str, gives: Collection[str], emptied: Collection[str] = ()) -> list[str]:
        """Keys of what goes, now that it is known which families the file gives."""
        self._read.add(uri)
        gives, emptied = frozenset(gives), frozenset(emptied)
        missing = (family for family in self._by_origin.get(uri, ()) if family.key not in gives)
        goes = [family.key for family in missing if family.key in emptied or self._is_the_file(family)]
        self._keys.update(goes)
        return goes

    def _is_the_file(self, family: Family) -> bool:
        return family.tenant == self._tenant and (
            family.name == family.origin or family.name.startswith(f"{family.origin}#")
        )

    def keys(self, claimed: Mapping[str, object]) -> set[str]:
        """What goes, but for what another file of the run gives."""
        return self._keys - claimed.keys()

    def was_read(self, origin: str | None) -> bool:
        return origin in self._read
