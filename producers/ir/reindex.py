"""Which records an older schema, extractor or model has made, so that their sources can be extracted again."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.diagnose import parse_time
from chunksink.producers.ir.schema import IR_VERSION

_Age = tuple[datetime, list[tuple[int, int, str]], str]


@dataclass(frozen=True)
class Current:
    """What records should be made with. An extractor or a part of a model that is not named here is never outdated."""

    schema_version: str = IR_VERSION
    extractors: Mapping[str, str] = field(default_factory=dict)
    """Version by extractor."""
    models: Mapping[str, Any] = field(default_factory=dict)
    """Value by part of a model: `ocr_engine`, `asr_model`."""


@dataclass(frozen=True)
class Outdated:
    """A record to make anew: its source, and what differs, as (what, its own, the current one)."""

    path: str
    record_id: str
    differences: tuple[tuple[str, Any, Any], ...]


def newest(records: Iterable[Record]) -> Current:
    """The newest of each that these records know: by version; of a model, which has no order, by `processed_at`. Of the
    schema it is the one that is read here."""
    extractors: dict[str, str] = {}
    models: dict[str, tuple[_Age, Any]] = {}
    for record in records:
        name, version, model, processed_at = _made_by(record)
        extractors[name] = max(extractors.get(name, ""), version, key=_version_key)
        for part, value in model.items():
            # What settles equal times, so that the order of the records says nothing.
            age = (_moment(processed_at), _version_key(str(value)), str(value))
            models[part] = max(models.get(part, (age, value)), (age, value), key=lambda known: known[0])
    return Current(extractors=extractors, models={part: value for part, (_, value) in models.items()})


def outdated(records: Iterable[Record], current: Current) -> Iterator[Outdated]:
    """Records that were not made with what is current, in their order. A model that took no part is no difference."""
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
            path = _group(record, "source").get("path", "")
            yield Outdated(str(path), str(record.get("id", "")), differences)


def _made_by(record: Record) -> tuple[str, str, dict[str, Any], str]:
    """Extractor, its version, parts of its model, and when; whatever an old record has in their places."""
    provenance = _group(record, "provenance")
    model = {part: value for part, value in _group(provenance, "model").items() if value is not None}
    return (
        str(provenance.get("extractor_name", "")),
        str(provenance.get("extractor_version", "")),
        model,
        str(provenance.get("processed_at") or ""),
    )


def _moment(told: str) -> datetime:
    """The earliest of all where nobody can tell."""
    try:
        return parse_time(told)
    except (ValueError, OverflowError):
        return datetime.min.replace(tzinfo=UTC)


def _group(record: Record, name: str) -> Record:
    group = record.get(name)
    return group if isinstance(group, dict) else {}


def _version_key(version: str) -> list[tuple[int, int, str]]:
    """1.10 is newer than 1.9, and 1.0 than 1.0rc1: numbers by value, words before them, an end between."""
    found = re.findall(r"[0-9]{1,18}|[A-Za-z]+", version)
    return [*((2, int(part), "") if part.isdigit() else (0, 0, part) for part in found), (1, 0, "")]
