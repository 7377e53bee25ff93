"""Which families a build cannot hold yet, so that loading an empty one need not look for what to remove."""

from collections.abc import Iterable

_MOST = 1_000_000
"""Families to remember, at some 70 bytes each; after that every family may be held."""


class Firsts:
    """Holds for as long as nobody else writes the build; whoever uses it makes a new one where somebody may have.

    Ask before writing, not after: a write that failed may have been done all the same.
    """

    def __init__(self, *, empty: bool) -> None:
        self._seen: set[int] | None = set() if empty else None

    def held(self, parent_ids: Iterable[str]) -> set[str]:
        """Those of these families that the build may hold already; from now on it may hold all of them."""
        asked = set(parent_ids)
        if self._seen is None:
            return asked
        keys = {parent_id: hash(parent_id) for parent_id in asked}  # a hash that two share only costs a look
        again = {parent_id for parent_id, key in keys.items() if key in self._seen}
        self._seen.update(keys.values())
        if len(self._seen) > _MOST:
            self._seen = None
        return again
