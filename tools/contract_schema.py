"""JSON Schemas of the contract, generated from its types, with additions that types cannot express."""

from typing import Any

import msgspec

from chunksink.chunkbus.chunk import CHUNK_VERSION, FAMILY_FIELDS, Chunk
from chunksink.chunkbus.layout import PARTITION_KEY
from chunksink.chunkbus.manifest import Manifest

_CHECKSUM = "^(sha256:)?[0-9A-Fa-f]{64}$"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def chunk_schema() -> dict[str, Any]:
    schema = _schema(Chunk, "A canonical chunk")
    # Rules that types cannot express: a choice between fields.
    schema["$defs"]["Provenance"]["allOf"] = [
        {"anyOf": [_filled("source_uri"), _filled("source_ref")]},
        {"anyOf": [_given("parser"), _filled("parser_name", "parser_version")]},
        {"anyOf": [_given("canonicalizer"), _filled("canonicalizer_name", "canonicalizer_version")]},
    ]
    text_or_null = {"type": ["string", "null"]}
    schema["$defs"]["Chunk"]["properties"]["metadata"]["anyOf"][0]["properties"] = dict.fromkeys(
        FAMILY_FIELDS, text_or_null
    )
    return schema


def manifest_schema() -> dict[str, Any]:
    schema = _schema(Manifest, "The manifest of a partition")
    definitions = schema["$defs"]
    definitions["Tombstone"]["anyOf"] = [_filled("parent_id"), _filled("document_id")]
    definitions["Tombstone"]["properties"]["tenant_id"]["anyOf"][0]["minLength"] = 1
    definitions["Checksums"]["properties"]["chunks_file"] = {"type": "string", "pattern": _CHECKSUM}
    definitions["Manifest"]["properties"]["partition_key"] = {"type": "string", "pattern": f"^{PARTITION_KEY}$"}
    definitions["ManifestProducer"].update(_filled("name", "version"))
    return schema


def _schema(type_: type, title: str) -> dict[str, Any]:
    schema = msgspec.json.schema(type_)
    definitions = schema["$defs"]
    properties = definitions[type_.__name__]["properties"]
    properties["schema_version"] = {"const": CHUNK_VERSION}
    properties["created_at"]["format"] = "date-time"  # validation accepts more forms of ISO 8601
    return {"$schema": _DIALECT, "title": title, **schema}


def _filled(*names: str) -> dict[str, Any]:
    return {"required": list(names), "properties": {name: {"type": "string", "minLength": 1} for name in names}}


def _given(name: str) -> dict[str, Any]:
    return {"required": [name], "properties": {name: {"type": "object"}}}
