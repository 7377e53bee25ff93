"""What earlier runs made of a file or a folder, so that this one goes on with it."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from chunksink.chunkbus.ledger import Ledger
from chunksink.producers.guessed import guessed
from chunksink.producers.kinds import Kind
from chunksink.producers.sources import Scope
from chunksink.producers.text import TEXT


class Before:
    """As the ledger tells of what went to this partition, or by this rule, and the memory of where it was found."""

    def __init__(self, ledger: Ledger, partition: str, kinds: Mapping[str, Kind], known: Iterable[Scope]) -> None:
        self._ledger, self._partition, self._kinds = ledger, partition, kinds
        known = list(known)
        self._folders = {os.fspath(place.folder) for place in known if place.prefix[-1:] in ("", "/")}
        self._files = {os.fspath(place.folder) for place in known} - self._folders
        self._parsers: dict[str, Kind] | None = None

    def kind(self, uri: str) -> Kind | None:
        """What read it, of a file of records."""
        if self._parsers is None:
            made = ((kind, kind.records) for kind in guessed(self._kinds).values())
            self._parsers = {records().parser[0]: kind for kind, records in made if records is not None}
        attempt = self._attempt(uri)
        return None if attempt is None else self._parsers.get(attempt["parser_name"])

    def was_text(self, uri: str, location: str) -> bool:
        """Whether it was read as plain text, be it named alone: its suffix would not have it read again."""
        return self.is_text(uri) or (bool(self._files) and os.path.realpath(location) in self._files)

    def is_text(self, uri: str) -> bool:
        """Whether that is what it was read as."""
        attempt = self._attempt(uri)
        return attempt is not None and attempt["parser_name"] == TEXT.parser[0]

    def was_folder(self, path: Path) -> bool:
        """Whether sources were read below it, which is not there any more."""
        return os.path.realpath(path) in self._folders

    def _attempt(self, uri: str) -> dict[str, Any] | None:
        return self._ledger.last_attempt(uri, self._partition)
