"""The Meilisearch sink: builds on a server, their settings, and the public name."""

from collections.abc import Mapping
from typing import Any

from chunksink.chunkbus.canonical import json_hash
from chunksink.sinks.capabilities import ChangedSettings
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildMissing, Refused, RefusedData
from chunksink.sinks.meilisearch.build import Limits, MeilisearchBuild
from chunksink.sinks.meilisearch.connection import Connection
from chunksink.sinks.meilisearch.index_settings import DEFAULTS, EMBEDDERS, complete, differences, patch_of, unknown
from chunksink.sinks.meilisearch.indexes import EMBEDDER, NOTES, Indexes, marker_in, with_marker, without_marker
from chunksink.sinks.meilisearch.reader import MeilisearchReader

_LIMITS = Limits()


class MeilisearchSink:
    """Builds on a server. `index` is the public name, under which other programs search the live build.

    `settings` are the index settings of a build, and `settings_file` is their file, for messages. With `vectors` the
    server gets our vectors for its hybrid search. Readers wait `search_timeout` seconds for an answer.
    """

    name = "meilisearch"

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        settings: Mapping[str, Any],
        settings_file: str = "the settings file",
        index: str = "chunks",
        vectors: bool = True,
        limits: Limits = _LIMITS,
        timeout: float = 60.0,
        search_timeout: float = 5.0,
    ) -> None:
        self.wants_vectors = vectors
        self._connection = Connection(url, key, timeout=timeout)
        self._search_connection = Connection(url, key, timeout=min(timeout, search_timeout))
        self._settings = settings
        self._settings_file = settings_file
        self._limits = limits
        self._indexes = Indexes(self._connection, index, limits.patience)

    def create(self, marker: Marker, dimensions: int | None = None) -> MeilisearchBuild:
        try:
            index = self._indexes.find(marker.build_id)
        except BuildMissing:
            index = self._indexes.make(marker.build_id)
        if index.marker is None:
            # Settings before documents, so that these are indexed once. The marker completes the creation.
            self._set(index.name, complete(self.desired_settings(dimensions)), marker, {})
        return self.open(marker.build_id)

    def open(self, build_id: str) -> MeilisearchBuild:
        """Also opens the index under the public name if its marker is missing but its documents have our hashes. Then
        `marker()` is None."""
        self._indexes.drain()
        name = self._indexes.find(build_id, unmarked=True).name
        return MeilisearchBuild(self._indexes, name, self.wants_vectors, self._limits)

    def reader(self, build_id: str) -> MeilisearchReader:
        indexes = Indexes(self._search_connection, self._indexes.public, self._limits.patience)
        return MeilisearchReader(self._search_connection, indexes.find(build_id).name)

    def builds(self) -> list[str]:
        return self._indexes.build_ids()

    def flip(self, old: str | None, new: str) -> None:
        self._indexes.flip(old, new)

    def shown(self) -> Marker | None:
        return self._indexes.shown()

    def drop(self, build_id: str) -> None:
        self._indexes.drop(build_id)

    def address(self, build_id: str) -> dict[str, str]:
        """The live build, which always has the public name."""
        del build_id
        return {"url": self._connection.where, "index": self._indexes.public}

    def version(self) -> str:
        return f"Meilisearch {self._connection.get('/version')['pkgVersion']} at {self._connection.where}"

    def update_settings(self, build_id: str, dimensions: int | None = None) -> ChangedSettings:
        """With `dimensions` also restores an embedder that somebody removed: the server still has the vectors."""
        name = self._indexes.find(build_id).name
        changes = differences(self.desired_settings(dimensions), self._settings_of(name))
        self._change_settings(name, patch_of(changes))
        names = tuple(change.name for change in changes)
        return ChangedSettings(names, vectors_in_doubt=EMBEDDERS in names)

    def settings_due(self, build_id: str, dimensions: int | None = None) -> list[str]:
        name = self._indexes.find(build_id, unmarked=True).name
        return [each.name for each in differences(self.desired_settings(dimensions), self._settings_of(name))]

    def unusable_settings(self, build_id: str | None) -> str:
        known = DEFAULTS if build_id is None else self._settings_of(self._indexes.find(build_id, unmarked=True).name)
        if not (strange := unknown(self._settings, known)):
            return ""
        names = ", ".join(strange)
        return f"{self._settings_file} sets {names}, which Meilisearch does not know: it would refuse the whole file"

    def desired_settings(self, dimensions: int | None) -> dict[str, Any]:
        if not self.wants_vectors or dimensions is None:
            return dict(self._settings)
        return {**self._settings, EMBEDDERS: {EMBEDDER: {"source": "userProvided", "dimensions": dimensions}}}

    def live_settings(self) -> dict[str, Any]:
        return self._settings_of(self._indexes.public)

    def change_live_settings(self, patch: Mapping[str, Any]) -> None:
        """Send settings to the index under the public name. The server reindexes what they affect."""
        self._change_settings(self._indexes.public, patch)

    def close(self) -> None:
        self._connection.close()
        self._search_connection.close()

    def _settings_of(self, name: str) -> dict[str, Any]:
        """The server's settings, in the form in which we sent them: the server returns some in another form."""
        settings: dict[str, Any] = self._connection.get(f"/indexes/{name}/settings")
        live, notes = without_marker(settings), _notes(settings["synonyms"])
        ours = complete(self._settings).items()
        return live | {key: sent for key, sent in ours if notes.get(key) == _note(sent, live.get(key))}

    def _change_settings(self, name: str, patch: Mapping[str, Any]) -> None:
        synonyms = self._connection.get(f"/indexes/{name}/settings/synonyms")
        marker = marker_in(synonyms)
        if marker is None:
            raise Refused(
                f"index {name} of Meilisearch at {self._connection.where} has no chunksink marker. If it is the live "
                "index of this home, run `chunksink sync`, which signs it again; else choose another index name "
                "with the option `index`"
            )
        self._set(name, patch, marker, _notes(synonyms))

    def _set(self, name: str, desired: Mapping[str, Any], marker: Marker, notes: Mapping[str, str]) -> None:
        """Send settings. For each that the server returns in another form, note both forms: else it would always differ
        from the file."""
        sent = dict(desired)
        if "synonyms" in sent:
            sent["synonyms"] = with_marker(sent["synonyms"], marker, self._indexes.public)
        self._send_settings(name, sent)
        settings = self._connection.get(f"/indexes/{name}/settings")
        live = without_marker(settings)
        kept = {key: note for key, note in notes.items() if key not in desired}
        rewritten = [each for each in differences(desired, live) if each.name in desired]
        kept |= {each.name: _note(each.desired, each.live) for each in rewritten}
        if kept != _notes(settings["synonyms"]):
            noted = [f"{key} {note}" for key, note in kept.items()]
            synonyms = {**with_marker(live["synonyms"], marker, self._indexes.public), NOTES: noted}
            self._indexes.change_settings(name, {"synonyms": synonyms})

    def _send_settings(self, name: str, settings: Mapping[str, Any]) -> None:
        """Send settings and wait. If the server refuses them, the error names the settings file."""
        try:
            try:
                self._indexes.change_settings(name, settings)
            except RefusedData:
                if not settings.get(EMBEDDERS):
                    raise
                # Documents written without an embedder must first be marked as having no vector.
                build = MeilisearchBuild(self._indexes, name, self.wants_vectors, self._limits)
                build.mark_without_vectors(settings[EMBEDDERS][EMBEDDER]["dimensions"])
                self._indexes.change_settings(name, settings)
        except RefusedData as error:
            raise Refused(
                f"the index settings {self._settings_file} cannot be applied: {error} Correct the file"
            ) from error


def _notes(synonyms: Mapping[str, Any]) -> dict[str, str]:
    return {name: note for name, _, note in (line.partition(" ") for line in synonyms.get(NOTES, ()))}


def _note(sent: Any, returned: Any) -> str:
    return f"{json_hash(sent):.16} {json_hash(returned):.16}"
