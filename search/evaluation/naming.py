"""Finds out which field of a document the judgements use as its name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from chunksink.chunkbus.identity import family_key
from chunksink.search.evaluation.reading import InvalidEvaluation, Judgements
from chunksink.sinks.document import Document


def _name_of_file(document: Document) -> str | None:
    if not document.filename:
        return None
    return document.filename if document.source_type == "rows" else PurePath(document.filename).stem


FIELDS: Mapping[str, Callable[[Document], str | None]] = {
    "document_id": lambda document: document.document_id,
    "chunk_id": lambda document: document.chunk_id,
    "parent_id": lambda document: document.parent_id,
    "source_uri": lambda document: document.source_uri,
    "filename": _name_of_file,
}
"""File names are compared without their extension. The `filename` of a JSON or CSV row is an id, and compared whole."""


@dataclass(frozen=True)
class Naming:
    """`judged` maps names as the index stores them to names as the judgements write them."""

    field: str
    judged: Mapping[str, str]
    missing: frozenset[str]
    """Judged names that no document has."""

    @property
    def by_chunk(self) -> bool:
        return self.field == "chunk_id"

    def names(self, documents: Iterable[Document]) -> list[str]:
        """The names of these documents in the judgements, each once. An unjudged document keeps its own name."""
        names = (FIELDS[self.field](document) for document in documents)
        return list(dict.fromkeys(self.judged.get(name, name) for name in names if name))


def find_naming(
    documents: Iterable[Document], judgements: Judgements, field: str | None = None, tenant: str | None = None
) -> Naming:
    """Uses `field`, or else the one of `FIELDS` that matches the most judged names; on a tie the first."""
    judged = {name for of_query in judgements.values() for name in of_query}
    stored = {one: _as_stored(one, judged, tenant) for one in ([field] if field else FIELDS)}
    matches: dict[str, set[str]] = {one: set() for one in stored}
    for document in documents:
        for one, names in stored.items():
            if (name := names.get(FIELDS[one](document) or "")) is not None:
                matches[one].add(name)
    best = max(matches, key=lambda one: len(matches[one]))
    if not matches[best]:
        fields = " or ".join("filename without extension" if one == "filename" else one for one in matches)
        raise InvalidEvaluation(
            f"none of the {len(judged)} judged names matches the {fields} of a document: do the judgements belong to "
            "this index?"
        )
    return Naming(best, stored[best], frozenset(judged - matches[best]))


def _as_stored(field: str, judged: set[str], tenant: str | None) -> dict[str, str]:
    stored = {name: name for name in judged}
    if field == "parent_id":  # the index stores a hash; the judgements may have the original name
        stored |= {family_key(name, tenant): name for name in judged}
    return stored
