"""Builds as indexes of a server. An index is known by the marker that it carries, not by its name: a flip swaps names.

The marker is a synonym in the index's settings. Settings go wherever the content goes, changing synonyms indexes
nothing again, and no person types the word. It also holds the public name that the build was made for: `chunks-old-b1`
may be a build of `chunks` or of `chunks-old`.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from sinks.errors import BuildMissing, NotConfirmed, Refused, WrongShape
from sinks.meilisearch import tasks
from sinks.meilisearch.connection import Connection
from sinks.meilisearch.errors import RefusedData
from sinks.places import check_build_id
from sinks.sink import Marker

MARKER = "chunksinkmarker"
PRIMARY_KEY = "id"
EMBEDDER = "default"


def marker_in(synonyms: Mapping[str, Any]) -> Marker | None:
    match synonyms.get(MARKER):
        case [str(home), str(build), str(version), str()] if version.isdigit():
            return Marker(home, build, int(version))
    return None


def with_marker(synonyms: Mapping[str, Any] | None, marker: Marker, public: str) -> dict[str, Any]:
    return {**(synonyms or {}), MARKER: [marker.home_id, marker.build_id, str(marker.projection_version), public]}


def without_marker(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the settings file has them."""
    own = {key: value for key, value in (settings.get("synonyms") or {}).items() if key != MARKER}
    return {**settings, "synonyms": own}


@dataclass(frozen=True)
class Index:
    """An index as it stands on the server now."""

    name: str
    marker: Marker | None
    made_for: str | None = None
    """The public name in its marker."""


class Indexes:
    """The indexes of one public name: that one, and those that bear a marker with it. Their names begin with it and a
    hyphen, which others' names may do too."""

    def __init__(self, connection: Connection, public: str, patience: float) -> None:
        self.connection = connection
        self.public = public
        self._patience = patience
        self._orders = tasks.Orders(connection, patience)

    def look_at(self, name: str) -> Index:
        synonyms = self.connection.get(f"/indexes/{name}/settings/synonyms")
        marker = marker_in(synonyms)
        return Index(name, marker, synonyms[MARKER][-1] if marker else None)

    def find(self, build_id: str) -> Index:
        """The index of a build; also one that was made for it and never signed."""
        indexes = self._all()
        for index in indexes:
            if index.marker is not None and index.marker.build_id == build_id and self._is_ours(index):
                return index
        for index in indexes:
            if index.marker is None and index.name == self._name_for(build_id):
                return index
        raise BuildMissing(f"Meilisearch at {self.connection.where} holds no build {build_id}: run a rebuild")

    def build_ids(self) -> list[str]:
        """Of signed builds. One that was never signed may be for another public name; only its maker knows its id."""
        return sorted({index.marker.build_id for index in self._all() if index.marker and self._is_ours(index)})

    def make(self, build_id: str) -> Index:
        """A new, empty index; an unsigned one of that name, left by a run that was killed, is taken over."""
        name = self._name_for(build_id)
        taken = {index.name for index in self._all() if index.marker is not None}
        while name in taken:  # by another build, since the last flip, or for another public name
            name += "-"
        create = partial(self.connection.control.create_index, name, {"primaryKey": PRIMARY_KEY})
        try:
            self._orders.carry_out(f"create {name}", create)
        except RefusedData:
            if name not in self._names():
                raise
        return Index(name, None)

    def require_ours(self, name: str) -> None:
        key = self.connection.get(f"/indexes/{name}").get("primaryKey")
        if key not in (PRIMARY_KEY, None):
            raise WrongShape(
                f"index {name} of Meilisearch at {self.connection.where} has the primary key {key!r}, not "
                f"{PRIMARY_KEY!r}: it is not one of ours; choose another index name"
            )

    def change_settings(self, name: str, patch: Mapping[str, Any]) -> None:
        """Sends these settings and waits until what they touch is indexed again."""
        if patch:
            send = partial(self.connection.control.index(name).update_settings, dict(patch))
            self._orders.carry_out(f"set {name} to {json.dumps(patch, sort_keys=True)}", send)

    def drain(self) -> None:
        """Waits for what a run before left in the queue, so that what is read now stays true."""
        left = tasks.unfinished(self.connection, self._names())
        tasks.wait(self.connection, left, self._patience)

    def flip(self, old: str | None, new: str) -> None:
        """Gives the build `new` the public name, in one step. A swap is its own inverse: so look first."""
        self.drain()
        live = next((index for index in self._all() if index.name == self.public), None)
        if live is not None and live.marker is not None and live.marker.build_id == new:
            return
        found = self.find(new)
        if live is not None and (live.marker is None or live.marker.build_id != old):
            held, remedy = "something that is not ours", "remove it if nobody needs it"
            if live.marker is not None:
                held, remedy = f"build {live.marker.build_id}", "look at the pointer again before flipping"
            raise Refused(
                f"index {self.public} of Meilisearch at {self.connection.where} holds {held}, not {old}: "
                f"choose another index name, or {remedy}"
            )
        # Where the public name is free, the index is renamed to it.
        pair: dict[str, list[str] | bool] = {"indexes": [found.name, self.public], "rename": live is None}
        swap = partial(self.connection.control.swap_indexes, [pair])
        self._orders.carry_out(f"swap {found.name} of build {new}", swap)
        now = self.look_at(self.public).marker
        if now is None or now.build_id != new:
            raise NotConfirmed(f"after the swap, index {self.public} does not hold build {new}: look at /tasks")

    def drop(self, build_id: str) -> None:
        while True:
            try:
                name = self.find(build_id).name
            except BuildMissing:
                return
            try:
                self._orders.carry_out(f"delete {name}", partial(self.connection.control.delete_index, name))
            except BuildMissing:
                return

    def _all(self) -> list[Index]:
        found: list[Index] = []
        for name in self._names():
            with suppress(BuildMissing):  # removed since, by whom it belongs to
                found.append(self.look_at(name))
        return found

    def _is_ours(self, index: Index) -> bool:
        return self.public in (index.name, index.made_for)

    def _names(self) -> list[str]:
        return list(self._pages())

    def _pages(self) -> Iterator[str]:
        offset = 0
        while True:
            page = self.connection.get("/indexes", limit=1000, offset=offset)["results"]
            for index in page:
                if index["uid"] == self.public or index["uid"].startswith(f"{self.public}-"):
                    yield index["uid"]
            if len(page) < 1000:
                return
            offset += len(page)

    def _name_for(self, build_id: str) -> str:
        return f"{self.public}-{check_build_id(build_id)}"
