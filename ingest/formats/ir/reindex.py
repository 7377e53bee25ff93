"""Finds records made by other versions of the schema, extractors or models: their sources must be extracted again."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.formats.ir.schema import IR_VERSION
from chunksink.ingest.record_fields import first_string


@dataclass(frozen=True)
class Current:
    """The current versions: by extractor, and by part of a model (`ocr_engine`, `asr_model`).

    Extractors and parts of models that are not listed are never outdated.
    """

    schema_version: str = IR_VERSION
    extractors: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outdated:
    """A record to extract again; `differences` are (name, its value, the current value)."""

    path: str
    differences: tuple[tuple[str, Any, Any], ...]


def newest(records: Iterable[Record]) -> Current:
    """The newest values in these records: extractors by version, models by `processed_at`."""
    extractors: dict[str, str] = {}
    models: dict[str, tuple[Any, Any]] = {}
    for record in records:
        name, version, model, processed_at = _made_by(record)
        extractors[name] = max(extractors.get(name, ""), version, key=_version_key)
        for part, value in model.items():
            known = ((processed_at, _version_key(str(value)), str(value)), value)
            models[part] = max(models.get(part, known), known, key=lambda known: known[0])
    return Current(extractors=extractors, models={part: value for part, (_, value) in models.items()})


def outdated(records: Iterable[Record], current: Current) -> Iterator[Outdated]:
    """Records of an older schema, or of another extractor version or model than the current one, in their order.

    A newer extractor version is a difference too, because versions may have no order. A model that the record
    did not use is not a difference.
    """
    for record in records:
        name, version, model, _ = _made_by(record)
        schema = str(record.get("schema_version", ""))
        compared = [
            ("schema_version", schema, max(schema, current.schema_version, key=_version_key)),
            (f"extractor {name}", version, current.extractors.get(name, version)),
            *((f"model {part}", value, current.models.get(part, value)) for part, value in sorted(model.items())),
        ]
        differences = tuple(entry for entry in compared if entry[1] != entry[2])
        if differences:
            yield Outdated(first_string(record, "source.path") or "", differences)


def _made_by(record: Record) -> tuple[str, str, Record, str]:
    """The extractor, its version, the parts of its model, and `processed_at`."""
    name, version, processed_at = (
        first_string(record, f"provenance.{name}") or ""
        for name in ("extractor_name", "extractor_version", "processed_at")
    )
    provenance = record.get("provenance")
    model = provenance.get("model") if isinstance(provenance, dict) else None
    parts = {part: value for part, value in model.items() if value is not None} if isinstance(model, dict) else {}
    return name, version, parts, processed_at


def _version_key(version: str) -> list[tuple[int, int, str]]:
    """A sort key: 1.10 is newer than 1.9, and 1.0 newer than 1.0rc1. An additional number makes a version newer, an
    additional word older."""
    found = re.findall(r"[0-9]{1,18}|[A-Za-z]+", version)
    return [*((2, int(part), "") if part.isdigit() else (0, 0, part) for part in found), (1, 0, "")]
