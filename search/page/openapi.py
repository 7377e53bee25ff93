"""The OpenAPI 3.1 description of the API, made from the parameters and fields of the code."""

from collections.abc import Mapping
from typing import Any

from chunksink.search.answer import OWN_FIELDS
from chunksink.search.filters import filter_fields
from chunksink.search.page.form import CHUNK_PARAMETERS, PARAMETERS, Parameter
from chunksink.search.page.readiness import REASONS
from chunksink.search.question import FUSIONS, MODES
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.document import LISTS
from chunksink.sinks.fields import FILTERS, VALUE_TYPES

_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_NUMBER = {"type": "number"}
_NUMBER_OR_NULL = {"type": ["number", "null"]}
_CHOICES = {"mode": MODES, "fusion": FUSIONS}


def described(version: str, fields: FieldSet) -> dict[str, Any]:
    listed = {"filter": sorted(filter_fields(fields)), "facet": sorted((*FILTERS, *fields.facets()))}
    chunk_id = {"name": "id", "in": "query", "required": True, "description": "A chunk_id.", "schema": _TEXT}
    few = [parameter for parameter in PARAMETERS if parameter.name in CHUNK_PARAMETERS]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "chunksink",
            "version": version,
            "description": "Searches documents by words and by meaning. If tokens are configured, each call needs one.",
        },
        "paths": {
            "/api/search": _get(
                "search",
                "The best sources for a question.",
                [_parameter(parameter, listed) for parameter in PARAMETERS],
                {"200": "Answer", "400": "Error", "401": "Error", "403": "Error", "503": "Error"},
            ),
            "/api/chunk": _get(
                "getChunk",
                "One passage with the passages around it.",
                [chunk_id, *(_parameter(parameter, listed) for parameter in few)],
                {"200": "Surrounded", "400": "Error", "401": "Error", "403": "Error", "404": "Error", "503": "Error"},
            ),
            "/healthz": _get("alive", "The server runs. Asks no engine; requires no token.", [], {"200": "Alive"}),
            "/readyz": _get(
                "ready",
                "Whether searches are answered. Requires no token.",
                [],
                {"200": "Readiness", "503": "Readiness"},
            ),
        },
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _get(name: str, summary: str, parameters: list[dict[str, Any]], answers: dict[str, str]) -> dict[str, Any]:
    responses = {
        status: {
            "description": _MEANINGS[status],
            "content": {"application/json": {"schema": _reference(schema)}},
        }
        for status, schema in answers.items()
    }
    return {"get": {"operationId": name, "summary": summary, "parameters": parameters, "responses": responses}}


_MEANINGS = {
    "200": "The answer.",
    "400": "The request is invalid; the message explains why.",
    "401": "A token is required.",
    "403": "The token is not for this tenant.",
    "404": "There is no such chunk, or the caller may not see it.",
    "503": "There is no index yet, it is not available right now, or too many searches are waiting.",
}


def _parameter(parameter: Parameter, listed: Mapping[str, list[str]]) -> dict[str, Any]:
    meaning = parameter.meaning
    if parameter.name in listed:
        meaning = f"{meaning}. Fields: {', '.join(listed[parameter.name])}"
    return {"name": parameter.name, "in": "query", "description": f"{meaning}.", "schema": _schema(parameter)}


def _schema(parameter: Parameter) -> dict[str, Any]:
    if parameter.kind == "number":
        bounds = {"minimum": parameter.minimum, "maximum": parameter.maximum}
        return {"type": "integer", **{name: bound for name, bound in bounds.items() if bound is not None}}
    if parameter.kind == "yes or no":
        return {"type": "boolean", "default": False}
    if parameter.kind == "list":
        return {"type": "array", "items": _TEXT}
    return {**_TEXT, **({"enum": list(_CHOICES[parameter.name])} if parameter.name in _CHOICES else {})}


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _map(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


_REFERENCE = {
    "chunk_id": _TEXT,
    "parent_id": _TEXT,
    "title": _TEXT_OR_NULL,
    "source_uri": _TEXT_OR_NULL,
    "link": {**_TEXT_OR_NULL, "description": "The source, with a fragment for the place of the chunk."},
    "locator": {"type": "object", "description": "The place of the chunk: page, slide, time or section, if known."},
}
_PASSAGE = {**_REFERENCE, "text": _TEXT}
_TYPES = {str: "string", int: "integer", bool: "boolean"}
_OWN = {
    name: _list(_TEXT) if name in LISTS else {"type": _TYPES[VALUE_TYPES[name]]} for name in OWN_FIELDS
}  # a field without a value is left out
_CHUNK = {**_PASSAGE, **_OWN}
_SHARE = _object(
    {
        "leg": _TEXT,
        "rank": {"type": ["integer", "null"]},
        **dict.fromkeys(("score", "weight", "value", "points"), _NUMBER),
        **dict.fromkeys(("low", "high"), _NUMBER_OR_NULL),
    }
)
_RERANK = {
    **_object({"score": _NUMBER, "place": {"type": "integer", "description": "The place before reranking."}}),
    "type": ["object", "null"],
}
_SCHEMAS: dict[str, Any] = {
    "Answer": _object(
        {
            "query": _TEXT,
            "mode": {"enum": list(MODES)},
            "hits": _list(_reference("Hit")),
            "more": {"type": "boolean", "description": "Whether further hits follow."},
            "facets": _map(_list(_object({"value": {}, "families": {"type": "integer"}}))),
            "counts_all": {
                "type": "boolean",
                "description": "Whether the facets count all hits. If not, later pages may count more.",
            },
            "took_ms": _NUMBER,
            "unavailable": {
                **_map(_TEXT),
                "description": "Maps each leg that failed (keyword, semantic or engine search) to the reason.",
            },
            "notice": _TEXT_OR_NULL,
            "not_reranked": {
                **_TEXT_OR_NULL,
                "description": "Why the configured reranker did not decide the order.",
            },
            "suggestions": {
                **_map(_TEXT),
                "description": "Maps words that no document contains to similar words that some do. Keyword search "
                "looked for these instead, except in phrases.",
            },
        }
    ),
    "Hit": _object(
        {
            **_CHUNK,
            "score": _NUMBER,
            "fields": _map({}),
            "metadata": _map({}),
            "weak": {"type": "boolean", "description": "Whether the hit is hardly related to the query."},
            "highlights": _list(_TEXT),
            "snippet": _list(_object({"text": _TEXT, "match": {"type": "boolean"}})),
            "ranks": {
                **_map({"type": "integer"}),
                "description": "The place in each leg that found it: keyword, semantic or engine. `path` is 1 if the "
                "query names the file.",
            },
            "same_text": {
                **_list(_object(_REFERENCE)),
                "description": "Other sources with the same text, which are not listed as hits.",
            },
            "context": _object({"before": _list(_reference("Passage")), "after": _list(_reference("Passage"))}),
            "explain": _object({"shares": _list(_SHARE), "document": {"type": "object"}, "rerank": _RERANK}),
        },
        optional=(*OWN_FIELDS, "context", "explain"),
    ),
    "Surrounded": _object(
        {**_CHUNK, "before": _list(_reference("Passage")), "after": _list(_reference("Passage"))},
        optional=OWN_FIELDS,
    ),
    "Passage": _object(_PASSAGE),
    "Alive": _object({"status": {"const": "ok"}}),
    "Readiness": _object(
        {
            "status": {"enum": ["ok", "degraded", "unavailable", "starting"]},
            "reason": {"enum": [*REASONS, None], "description": "Why searches fail."},
            "unavailable": {**_list(_TEXT), "description": "Kinds of search that are not available."},
        }
    ),
    "Error": _object({"error": _TEXT}),
}
