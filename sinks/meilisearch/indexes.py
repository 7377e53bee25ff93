"""Builds as indexes of a server. An index is known by the marker that it carries, not by its name: a flip swaps names.

The marker is a synonym in the index's settings. Settings go wherever the content goes, changing synonyms indexes
nothing again, and no person types the word. It also holds the public name that the build was made for: `chunks-old-b1`
may be a build of `chunks` or of `chunks-old`.

Whoever sets the settings back takes the marker away. What lies unmarked under the public name, and looks like ours, can
be opened by whoever knows which build that was; it is for them to compare what it holds, and to sign it.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic, sleep
from typing import Any

from chunksink.settings.engine_settings import EMBEDDERS
from chunksink.settings.index_settings import differences
from chunksink.sinks.build_folders import check_build_id
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import MAKE_ANEW, BuildMissing, NotConfirmed, Refused
from chunksink.sinks.meilisearch import rows, tasks
from chunksink.sinks.meilisearch.connection import Connection
from chunksink.sinks.meilisearch.errors import RefusedData

MARKER = "chunksinkmarker"
RETURNED = "chunksinksettings"
"""Settings that the server returns in other words than they were sent in: `name sent returned`, with digests."""
PRIMARY_KEY = "id"
EMBEDDER = "default"
_SAMPLE = 20
SWAP_SECONDS = 30.0
_LOOK_SECONDS = 0.1


def marker_in(synonyms: Mapping[str, Any]) -> Marker | None:
    match synonyms.get(MARKER):
        case [str(home), str(build), str(version), str(), *stamp] if version.isdigit():
            return Marker(home, build, int(version), *map(str, stamp[:1]))
    return None


def with_marker(synonyms: Mapping[str, Any] | None, marker: Marker, public: str) -> dict[str, Any]:
    said = [marker.home_id, marker.build_id, str(marker.projection_version), public]
    return {**(synonyms or {}), MARKER: [*said, marker.stamp] if marker.stamp else said}


def without_marker(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the settings file has them."""
    own = {key: value for key, value in (settings.get("synonyms") or {}).items() if key not in (MARKER, RETURNED)}
    return {**settings, "synonyms": own}


@dataclass(frozen=True)
class ServerIndex:
    """An index as it stands on the server now."""

    name: str
    marker: Marker | None
    made_for: str | None = None
    """The public name in its marker."""
    primary_key: str | None = PRIMARY_KEY
    """Without one it holds no document, and never did."""


class Indexes:
    """The indexes of one public name: that one, and those that bear a marker with it. Their names begin with it and a
    hyphen, which others' names may do too."""

    def __init__(self, connection: Connection, public: str, patience: float) -> None:
        self.connection = connection
        self.public = public
        self._patience = patience
        self._single_tasks = tasks.SingleTasks(connection, patience)

    def look_at(self, name: str, primary_key: str | None = PRIMARY_KEY) -> ServerIndex:
        synonyms = self.connection.get(f"/indexes/{name}/settings/synonyms")
        marker = marker_in(synonyms)
        return ServerIndex(name, marker, synonyms[MARKER][3] if marker else None, primary_key)

    def find(self, build_id: str, *, unmarked: bool = False) -> ServerIndex:
        """The index of a build; also one that was made for it and never signed. With `unmarked` also what the public
        name shows, where that may be a build that has lost its marker: whoever asks knows that it was this one."""
        indexes = sorted(self._all(), key=lambda index: index.name != self.public)  # of two, the one that is shown
        indexes = [index for index in indexes if not self._is_leftover(index)]
        for index in indexes:
            if index.marker is not None and index.marker.build_id == build_id and self._is_ours(index):
                return index
        public = next(
            (index for index in indexes if index.name == self.public and self._has_lost_its_marker(index)), None
        )
        if unmarked and public is not None:
            return public
        for index in indexes:
            if index.marker is None and index.name == self._name_for(build_id):
                return index
        remedy = MAKE_ANEW
        if public is not None:
            remedy = (
                f"but the index {self.public} may be one that has lost its marker, since somebody changed its "
                "synonyms or set its settings back. Run `chunksink sync`, which signs it again"
            )
        raise BuildMissing(f"Meilisearch at {self.connection.where} holds no build {build_id}: {remedy}")

    def build_ids(self) -> list[str]:
        """Of signed builds. One that was never signed may be for another public name; only its maker knows its id."""
        ours = [index for index in self._all() if self._is_ours(index) and not self._is_leftover(index)]
        return sorted({index.marker.build_id for index in ours if index.marker is not None})

    def make(self, build_id: str) -> ServerIndex:
        """A new, empty index; an unsigned one of that name, left by a run that was killed, is taken over."""
        name = self._name_for(build_id)
        there = {index.name: index for index in self._all()}
        for index in [each for each in there.values() if self._is_ours(each) or each.name == name]:
            if self._is_leftover(index):  # its primary key would be guessed from the first documents, and not be found
                self._remove(index.name)
                del there[index.name]
        # A build may have that name since the last flip, or be one of another public name.
        while name in there and there[name].marker is not None:
            name += "-"
        create = partial(self.connection.control.create_index, name, {"primaryKey": PRIMARY_KEY})
        try:
            self._single_tasks.carry_out(f"create {name}", create)
        except RefusedData:
            if name not in self._names():
                raise
        return ServerIndex(name, None)

    def has_key(self, name: str) -> bool:
        """Whether it was made by us, and not by Meilisearch of what was sent to it."""
        return bool(self.connection.get(f"/indexes/{name}").get("primaryKey") == PRIMARY_KEY)

    def change_settings(self, name: str, patch: Mapping[str, Any]) -> None:
        """Sends these settings and waits until what they touch is indexed again."""
        if patch:
            send = partial(self.connection.control.index(name).update_settings, dict(patch))
            self._single_tasks.carry_out(f"set {name} to {json.dumps(patch, sort_keys=True)}", send)

    def drain(self) -> None:
        """Waits for what a run before left in the queue, so that what is read now stays true."""
        left = tasks.unfinished(self.connection, self._names())
        tasks.wait(self.connection, left, self._patience)

    def shown(self) -> Marker | None:
        """Whose build the public name shows; None where the name is free, or what it shows may be ours and has lost its
        marker. Refused where it is nobody's that we know."""
        try:
            key = self.connection.get(f"/indexes/{self.public}").get("primaryKey")
            index = self.look_at(self.public, key)
        except BuildMissing:
            return None
        if index.marker is None and not (self._is_leftover(index) or self._has_lost_its_marker(index)):
            raise self._strange()
        return index.marker

    def flip(self, old: str | None, new: str) -> None:
        """Gives the build `new` the public name, in one step. A swap is its own inverse: so look first."""
        self.drain()
        live = next((index for index in self._all() if index.name == self.public), None)
        leftover = live if live is not None and self._is_leftover(live) else None
        live = live if leftover is None else None
        if live is not None and live.marker is not None and live.marker.build_id == new:
            return
        found = self.find(new)
        if leftover is not None:
            self._remove(leftover.name)
        if live is not None and live.marker is None:
            raise self._strange()
        if live is not None and live.marker is not None and live.marker.build_id != old:
            raise Refused(
                f"index {self.public} of Meilisearch at {self.connection.where} holds build {live.marker.build_id}, "
                f"not {old}: choose another index name, or look at the pointer again before flipping"
            )
        # Where the public name is free, the index is renamed to it.
        pair: dict[str, list[str] | bool] = {"indexes": [found.name, self.public], "rename": live is None}
        swap = partial(self.connection.control.swap_indexes, [pair])
        try:
            self._single_tasks.carry_out(f"swap {found.name} of build {new}", swap)
        except NotConfirmed:
            self._await_swap(new)
        if not self._shows(new):
            raise NotConfirmed(f"after the swap, index {self.public} does not hold build {new}: look at /tasks")

    def _strange(self) -> Refused:
        return Refused(
            f"index {self.public} of Meilisearch at {self.connection.where} holds something that is not ours: choose "
            "another index name, or remove it if nobody needs it"
        )

    def _await_swap(self, new: str) -> None:
        """A key for some indexes alone is shown no swaps: what stands there tells. To ask again might swap back, so
        nobody does before somebody has looked."""
        until = monotonic() + SWAP_SECONDS
        while not self._shows(new):
            if monotonic() > until:
                raise Refused(
                    f"Meilisearch at {self.connection.where} was asked to show build {new} as index {self.public}, and "
                    f"after {SWAP_SECONDS:.0f} s does not: its key is not shown that task, or somebody cancelled it. "
                    "Look at /tasks, and run it again"
                )
            sleep(_LOOK_SECONDS)

    def _shows(self, build_id: str) -> bool:
        marker = self.look_at(self.public).marker
        return marker is not None and marker.build_id == build_id

    def drop(self, build_id: str) -> None:
        while True:
            try:
                name = self.find(build_id).name
            except BuildMissing:
                return
            try:
                self._remove(name)
            except BuildMissing:
                return

    def _remove(self, name: str) -> None:
        self._single_tasks.carry_out(f"delete {name}", partial(self.connection.control.delete_index, name))

    def _all(self) -> list[ServerIndex]:
        found: list[ServerIndex] = []
        for name, primary_key in list(self._pages()):
            with suppress(BuildMissing):  # removed since, by whom it belongs to
                found.append(self.look_at(name, primary_key))
        return found

    def _is_leftover(self, index: ServerIndex) -> bool:
        """Whether it is what Meilisearch itself makes of a marker, or of documents that it then refuses, for an index
        that is not there. Nobody has put anything into it: its name is free."""
        if index.primary_key is not None or index.marker is not None:
            return index.primary_key is None
        try:
            held = self.connection.get(f"/indexes/{index.name}/stats")["numberOfDocuments"]
            settings = self.connection.get(f"/indexes/{index.name}/settings")
        except BuildMissing:
            return False
        return not held and not differences({}, settings) and not settings.get(EMBEDDERS)

    def _has_lost_its_marker(self, index: ServerIndex) -> bool:
        """Whether it may be one of ours without its marker: what it holds bears all the hashes that we give."""
        if index.marker is not None or index.primary_key != PRIMARY_KEY:
            return False
        asked = {"limit": _SAMPLE, "fields": list(rows.HASHES)}
        try:
            held = self.connection.send(f"/indexes/{index.name}/documents/fetch", asked)["results"]
        except BuildMissing:
            return False
        return bool(held) and all(isinstance(one.get(name), str) for one in held for name in rows.HASHES)

    def _is_ours(self, index: ServerIndex) -> bool:
        return self.public in (index.name, index.made_for)

    def _names(self) -> list[str]:
        return [name for name, _ in self._pages()]

    def _pages(self) -> Iterator[tuple[str, str | None]]:
        """Names and primary keys."""
        offset = 0
        while True:
            page = self.connection.get("/indexes", limit=1000, offset=offset)["results"]
            for index in page:
                if index["uid"] == self.public or index["uid"].startswith(f"{self.public}-"):
                    yield index["uid"], index.get("primaryKey")
            if len(page) < 1000:
                return
            offset += len(page)

    def _name_for(self, build_id: str) -> str:
        return f"{self.public}-{check_build_id(build_id)}"
