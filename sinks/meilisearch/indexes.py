"""Builds as indexes of a server. An index is identified by its marker, not by its name: a flip swaps names.

The marker is a synonym in the index's settings: a swap moves settings with the content, changing synonyms does not
reindex, and nobody searches for that word. It includes the public name that the build was created for, because
`chunks-old-b1` may be a build of `chunks` or of `chunks-old`.

Resetting the settings removes the marker. The index under the public name can still be opened by a build id, if its
documents have our hashes. The caller must then check the content and sign it.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic, sleep
from typing import Any

from chunksink.sinks.build_folders import check_build_id
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildMissing, NotConfirmed, Refused, RefusedData
from chunksink.sinks.meilisearch import rows, tasks
from chunksink.sinks.meilisearch.connection import Connection
from chunksink.sinks.meilisearch.index_settings import EMBEDDERS, differences

MARKER = "chunksinkmarker"
NOTES = "chunksinksettings"
"""A synonym whose values are notes, one for each setting that the server returns in another form than sent:
`NAME DIGEST_OF_SENT DIGEST_OF_RETURNED`."""
PRIMARY_KEY = "id"
EMBEDDER = "default"
_SAMPLE = 20
SWAP_SECONDS = 30.0
_POLL_SECONDS = 0.1


def marker_in(synonyms: Mapping[str, Any]) -> Marker | None:
    match synonyms.get(MARKER):
        case [str(home), str(build), str(version), str(), *stamp] if version.isdigit():
            return Marker(home, build, int(version), *map(str, stamp[:1]))
    return None


def with_marker(synonyms: Mapping[str, Any] | None, marker: Marker, public: str) -> dict[str, Any]:
    values = [marker.home_id, marker.build_id, str(marker.projection_version), public]
    return {**(synonyms or {}), MARKER: [*values, marker.stamp] if marker.stamp else values}


def without_marker(settings: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in (settings.get("synonyms") or {}).items() if key not in (MARKER, NOTES)}
    return {**settings, "synonyms": own}


@dataclass(frozen=True)
class ServerIndex:
    """The current state of an index on the server."""

    name: str
    marker: Marker | None
    public: str | None = None
    """The public name in its marker."""
    primary_key: str | None = PRIMARY_KEY
    """None in an index that was created without a key and never had a document; ours always have a key."""


class Indexes:
    """The indexes of one public name: the one with that name, and those with that name in their marker. The latter are
    called `<public>-...`, but foreign indexes may have such names too."""

    def __init__(self, connection: Connection, public: str, patience: float) -> None:
        self.connection = connection
        self.public = public
        self._patience = patience
        self._single_tasks = tasks.SingleTasks(connection, patience)

    def inspect(self, name: str, primary_key: str | None = PRIMARY_KEY) -> ServerIndex:
        synonyms = self.connection.get(f"/indexes/{name}/settings/synonyms")
        marker = marker_in(synonyms)
        return ServerIndex(name, marker, synonyms[MARKER][3] if marker else None, primary_key)

    def find(self, build_id: str, *, unmarked: bool = False) -> ServerIndex:
        """The index of a build, even if it was never signed. With `unmarked` also the index under the public name, if
        it seems to have lost its marker: then it counts as this build."""
        indexes = sorted(self._all(), key=lambda index: index.name != self.public)  # prefer the live one
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
        if public is not None:
            raise BuildMissing(
                f"Meilisearch at {self.connection.where} has no index marked as build {build_id}. Perhaps "
                f"{self.public} has lost its marker, because somebody changed its synonyms or reset its settings",
                "run `chunksink sync`, which signs it again",
            )
        raise BuildMissing(f"Meilisearch at {self.connection.where} has no build {build_id}")

    def build_ids(self) -> list[str]:
        """The ids of signed builds. An unsigned one may belong to another public name."""
        ours = [index for index in self._all() if self._is_ours(index) and not self._is_leftover(index)]
        return sorted({index.marker.build_id for index in ours if index.marker is not None})

    def make(self, build_id: str) -> ServerIndex:
        """Create an empty index. An unsigned one of this name, from a killed run, is used instead."""
        name = self._name_for(build_id)
        existing = {index.name: index for index in self._all()}
        for index in [each for each in existing.values() if self._is_ours(each) or each.name == name]:
            if self._is_leftover(index):  # Meilisearch would fail to guess its primary key from the first documents
                self._remove(index.name)
                del existing[index.name]
        # The name may be taken: a flip gave it to another build, or the index belongs to another public name.
        while name in existing and existing[name].marker is not None:
            name += "-"
        create = partial(self.connection.control.create_index, name, {"primaryKey": PRIMARY_KEY})
        try:
            self._single_tasks.run(f"create {name}", create)
        except RefusedData:
            if name not in self._names():
                raise
        return ServerIndex(name, None)

    def has_our_primary_key(self, name: str) -> bool:
        """Whether we created the index. Meilisearch itself creates missing ones without a primary key."""
        return bool(self.connection.get(f"/indexes/{name}").get("primaryKey") == PRIMARY_KEY)

    def change_settings(self, name: str, patch: Mapping[str, Any]) -> None:
        """Send settings and wait until the server has applied them."""
        if patch:
            send = partial(self.connection.control.index(name).update_settings, dict(patch))
            self._single_tasks.run(f"set {name} to {json.dumps(patch, sort_keys=True)}", send)

    def drain(self) -> None:
        """Wait for tasks of earlier runs, so that they do not change what is read next."""
        tasks.wait(self.connection, tasks.unfinished(self.connection, self._names()), self._patience)

    def shown(self) -> Marker | None:
        """The marker under the public name. None if the name is free, or if the index may be ours and has lost its
        marker. Raises `Refused` for a foreign index."""
        try:
            key = self.connection.get(f"/indexes/{self.public}").get("primaryKey")
            index = self.inspect(self.public, key)
        except BuildMissing:
            return None
        if index.marker is None and not (self._is_leftover(index) or self._has_lost_its_marker(index)):
            raise self._foreign()
        return index.marker

    def flip(self, old: str | None, new: str) -> None:
        """Move the public name to the build `new` in one step. Checks first: a repeated swap would swap back."""
        self.drain()
        live = next((index for index in self._all() if index.name == self.public), None)
        is_leftover = live is not None and self._is_leftover(live)
        marker = None if live is None or is_leftover else live.marker
        if marker is not None and marker.build_id == new:
            return
        found = self.find(new)
        if is_leftover:
            self._remove(self.public)
            live = None
        if live is not None and marker is None:
            raise self._foreign()
        if marker is not None and marker.build_id != old:
            expected = f", not {old}" if old else ""
            raise Refused(
                f"index {self.public} of Meilisearch at {self.connection.where} is build {marker.build_id}{expected}: "
                "choose another index name with the option `index`, or run the command again"
            )
        # If the public name is free, the index is renamed to it.
        pair: dict[str, list[str] | bool] = {"indexes": [found.name, self.public], "rename": live is None}
        swap = partial(self.connection.control.swap_indexes, [pair])
        try:
            self._single_tasks.run(f"swap {found.name} of build {new}", swap)
        except NotConfirmed:
            self._await_swap(new)
        if not self._shows(new):
            where = self.connection.where
            raise NotConfirmed(f"after the swap, index {self.public} is not build {new}: see {where}/tasks")

    def _foreign(self) -> Refused:
        return Refused(
            f"index {self.public} of Meilisearch at {self.connection.where} was not created by chunksink: choose "
            "another index name with the option `index`, or remove it if nobody needs it"
        )

    def _await_swap(self, new: str) -> None:
        """Wait until the index shows the new build: a key limited to some indexes cannot see swap tasks. The swap is
        never sent again, because that might swap back."""
        until = monotonic() + SWAP_SECONDS
        while not self._shows(new):
            if monotonic() > until:
                raise Refused(
                    f"Meilisearch at {self.connection.where} has not swapped build {new} to index {self.public} after "
                    f"{SWAP_SECONDS:.0f} s. The task may have been cancelled, or the key cannot see it: see "
                    f"{self.connection.where}/tasks, then run the command again"
                )
            sleep(_POLL_SECONDS)

    def _shows(self, build_id: str) -> bool:
        marker = self.inspect(self.public).marker
        return marker is not None and marker.build_id == build_id

    def drop(self, build_id: str) -> None:
        with suppress(BuildMissing):
            while True:
                self._remove(self.find(build_id).name)

    def _remove(self, name: str) -> None:
        self._single_tasks.run(f"delete {name}", partial(self.connection.control.delete_index, name))

    def _all(self) -> list[ServerIndex]:
        indexes: list[ServerIndex] = []
        for name, primary_key in list(self._names_and_keys()):
            with suppress(BuildMissing):  # removed meanwhile
                indexes.append(self.inspect(name, primary_key))
        return indexes

    def _is_leftover(self, index: ServerIndex) -> bool:
        """Whether Meilisearch itself may have created this index, because settings or refused documents were sent
        to a missing one. It is empty and can be removed."""
        if index.primary_key is not None:
            return False
        if index.marker is not None:
            return True
        try:
            documents = self.connection.get(f"/indexes/{index.name}/stats")["numberOfDocuments"]
            settings = self.connection.get(f"/indexes/{index.name}/settings")
        except BuildMissing:
            return False
        return not documents and not differences({}, settings) and not settings.get(EMBEDDERS)

    def _has_lost_its_marker(self, index: ServerIndex) -> bool:
        """Whether this unmarked index may be one of ours: a sample of its documents has all our hashes."""
        if index.marker is not None or index.primary_key != PRIMARY_KEY:
            return False
        request = {"limit": _SAMPLE, "fields": list(rows.HASHES)}
        try:
            sample = self.connection.send(f"/indexes/{index.name}/documents/fetch", request)["results"]
        except BuildMissing:
            return False
        return bool(sample) and all(isinstance(one.get(name), str) for one in sample for name in rows.HASHES)

    def _is_ours(self, index: ServerIndex) -> bool:
        return self.public in (index.name, index.public)

    def _names(self) -> list[str]:
        return [name for name, _ in self._names_and_keys()]

    def _names_and_keys(self) -> Iterator[tuple[str, str | None]]:
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
