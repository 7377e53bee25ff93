"""One build: one file per family.

A new file is renamed over the old one, so the family is never absent and keeps no old documents. In `scan` a foreign
file counts as one document, and an unreadable line as a document without hashes. A document that moved to another
family is in both until the old family is replaced or deleted.
"""

import os
import re
import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import orjson

from chunksink.chunkbus.canonical import canonical_json
from chunksink.chunkbus.storage import make_durable
from chunksink.sinks.contract import NO_PARENT, Marker, RefusedDocument, Stored
from chunksink.sinks.document import Document, Family
from chunksink.sinks.errors import BuildBroken
from chunksink.sinks.jsonl.errors import translate_errors

MARKER, FAMILIES, PENDING = "marker.json", "families", ".pending"
_DIGEST = re.compile("[0-9a-f]{64}")
_FILE = re.compile(r"([0-9a-f]{2})/(\1[0-9a-f]{62})\.jsonl")


@dataclass(frozen=True)
class _NewFile:
    path: Path
    parts: Collection[str]
    """The first id of each part that it has: a repeated call must not append a part again."""
    is_complete: bool


class JsonlBuild:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._families = folder / FAMILIES
        self._cleaned = False
        self._pending: dict[str, _NewFile | None] = {}  # by parent_id the new file, or None to remove the family
        self._unsynced: set[Path] = set()

    def require(self) -> None:
        """Raise `BuildBroken` if the build cannot be read."""
        if not self._families.is_dir():
            raise BuildBroken(f"{self._families} is missing")
        self.marker()

    def marker(self) -> Marker | None:
        path = self._folder / MARKER
        with translate_errors(self._folder):
            try:
                return msgspec.json.decode(path.read_bytes(), type=Marker) if path.exists() else None
            except msgspec.MsgspecError as error:
                raise BuildBroken(f"{path} is damaged ({error})") from error

    def sign(self, marker: Marker) -> None:
        with translate_errors(self._folder):
            self._write([canonical_json(msgspec.to_builtins(marker))]).replace(self._folder / MARKER)
            make_durable(self._folder)

    def count(self) -> int:
        with translate_errors(self._folder):
            return sum(1 if parent_id == NO_PARENT else self._count_of(place) for place, parent_id in self._files())

    def replace(self, families: Sequence[Family]) -> int:
        sent = 0
        with translate_errors(self._folder):
            for parent_id, family in {family.parent_id: family for family in families}.items():
                lines = _lines(family)
                sent += len(lines)
                part = family.documents[0].id
                new = None if family.first else self._pending.get(parent_id)
                if new is None:
                    path = self._write(lines)
                    self._discard_pending(parent_id)
                    self._pending[parent_id] = _NewFile(path, {part}, family.last)
                elif part not in new.parts:
                    self._write(lines, new.path)
                    self._pending[parent_id] = _NewFile(new.path, {*new.parts, part}, family.last)
        return sent

    def delete(self, parent_ids: Sequence[str]) -> None:
        for parent_id in parent_ids:
            self._discard_pending(parent_id)
            self._pending[parent_id] = None

    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        places = [(f"{parent_id[:2]}/{parent_id}.jsonl", parent_id) for parent_id in parent_ids]
        with translate_errors(self._folder):
            files = [place for place in places if _FILE.fullmatch(place[0]) and (self._families / place[0]).is_file()]
            for place, parent_id, line in self._lines_of(files):
                yield _stored(place, parent_id, line, content)

    def flush(self) -> list[RefusedDocument]:
        with translate_errors(self._folder):
            for parent_id, new in list(self._pending.items()):
                if new is None or new.is_complete:
                    self._apply(parent_id, new.path if new else None)
                    del self._pending[parent_id]  # only now: after an error the next flush continues here
            for folder in self._unsynced:
                make_durable(folder)
        self._unsynced = set()
        return []  # a file accepts every document

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        with translate_errors(self._folder):
            for place, parent_id, line in self._lines_of(self._files()):
                yield _stored(place, parent_id, line, content)

    def scrub(self) -> None:
        """Remove files that were not flushed, including those of a killed writer."""
        with translate_errors(self._folder):
            if (pending := self._folder / PENDING).is_dir():
                shutil.rmtree(pending)

    def close(self) -> None:
        for parent_id in list(self._pending):
            self._discard_pending(parent_id)

    def _discard_pending(self, parent_id: str) -> None:
        """Discard the calls for this family since the last flush."""
        if (new := self._pending.pop(parent_id, None)) is not None:
            with suppress(OSError):  # the next writer removes it
                new.path.unlink()

    def _write(self, lines: Sequence[bytes], after: Path | None = None) -> Path:
        """Save these lines in a new file, or append them to `after`, and sync the file.

        It is synced here, not in `flush`: after a failed sync the lines must be written again, and only a repeated
        `replace` has them.
        """
        folder = self._folder / PENDING
        if not self._cleaned:  # at the first write, not on opening: a scan must not remove a writer's files
            shutil.rmtree(folder, ignore_errors=True)
            self._cleaned = True
        folder.mkdir(exist_ok=True)
        path = after or folder / uuid.uuid4().hex
        size = path.stat().st_size if after else 0
        try:
            with path.open("ab") as file:
                file.writelines(line + b"\n" for line in lines)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            if after:
                os.truncate(path, size)
            else:
                path.unlink(missing_ok=True)
            raise
        return path

    def _apply(self, parent_id: str, new: Path | None) -> None:
        path = self._families / parent_id[:2] / f"{parent_id}.jsonl"
        if new is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._unsynced |= {path.parent, self._families, self._folder}
            new.replace(path)
        elif _DIGEST.fullmatch(parent_id) and path.parent.is_dir():
            self._unsynced.add(path.parent)
            path.unlink(missing_ok=True)
        elif parent_id == NO_PARENT:
            for foreign in [place for place, parent_id in self._files() if parent_id == NO_PARENT]:
                (self._families / foreign).unlink(missing_ok=True)

    def _count_of(self, place: str) -> int:
        """Documents of a family. Optimised for speed, because there are very many files."""
        with open(f"{self._families}/{place}", "rb", buffering=0) as file:  # noqa: PTH123
            return sum(map(bool, map(bytes.strip, file.read().split(b"\n"))))

    def _lines_of(self, files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, bytes]]:
        """Every document: its place, its family, its line. A foreign file is one document with an empty line."""
        for place, parent_id in files:
            name = os.fsencode(f"{FAMILIES}/{place}").decode(errors="backslashreplace")
            if parent_id == NO_PARENT:
                yield name, NO_PARENT, b""
                continue
            with (self._families / place).open("rb") as file:
                yield from ((f"{name}:{at}", parent_id, line) for at, line in enumerate(file, 1) if line.strip())

    def _files(self, below: str = "") -> Iterator[tuple[str, str]]:
        """Every file that is not hidden: its path below `families/`, and its family."""
        with os.scandir(self._families / below) as entries:
            for entry in entries:
                place = below + entry.name
                if entry.is_dir(follow_symlinks=False):
                    yield from self._files(f"{place}/")
                elif not entry.name.startswith("."):
                    family = _FILE.fullmatch(place) if entry.is_file(follow_symlinks=False) else None
                    yield place, family[2] if family else NO_PARENT


def _lines(family: Family) -> list[bytes]:
    if not _DIGEST.fullmatch(family.parent_id):
        raise ValueError(f"invalid family {family.parent_id!r}: it could be a path")
    documents = {document.id: document for document in family.documents}
    return [canonical_json(document.as_dict()) for document in documents.values()]


def _stored(place: str, parent_id: str, line: bytes, content: bool) -> Stored:
    fields: Any = None
    with suppress(orjson.JSONDecodeError):
        fields = orjson.loads(line)
    if not isinstance(fields, dict):
        return Stored(place, parent_id, "", "")
    strings = {name: value for name, value in fields.items() if isinstance(value, str)}
    id = strings.get("id") or place
    if not content:
        return Stored(id, parent_id, strings.get("document_hash", ""), strings.get("text_hash", ""))
    return Stored.with_content(id, parent_id, lambda: Document.from_fields(fields))
