"""The map from chunks to sink documents: one rule per field, in the order of evaluation.

`docs/contract.md` prints it. `projection` applies it and adds the fields that depend on siblings.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from chunksink.chunkbus import identity
from chunksink.chunkbus.canonical import sha256_hex, text_hash
from chunksink.chunkbus.chunk import Record
from chunksink.sinks import values

Read = Callable[[Any], Any]
Values = dict[str, Any]

_SINK_ID = re.compile(r"(?!h-)[A-Za-z0-9_-]{1,511}")


@dataclass(frozen=True)
class FieldRule:
    """How one field of the document is computed.

    `paths` are tried in order. `read` converts the value at a path; if it returns None, the next path is tried. If no
    path has a value, `derive` computes one from the chunk and the fields of earlier rules.
    """

    name: str
    meaning: str
    paths: tuple[str, ...] = ()
    read: Read = values.string
    derive: Callable[[Record, Values], Any] | None = None
    filter: Literal["", "equal", "range", "pattern"] = ""

    def value(self, record: Record, by_path: Values, above: Values) -> Any:
        """The value of the field. `by_path` is the result of `values_by_path(record)`."""
        for path in self.paths:
            raw = by_path.get(path)
            if raw is not None:
                value = self.read(raw)
                if value is not None:
                    return value
        return self.derive(record, above) if self.derive is not None else None


def sink_id(chunk_id: str) -> str:
    """The id of a document in every sink: the `chunk_id` if every engine accepts it, else `h-` and its sha256.

    A `chunk_id` that begins with `h-` is hashed too, so that two chunks never get one id.
    """
    return chunk_id if _SINK_ID.fullmatch(chunk_id) else "h-" + sha256_hex(chunk_id.encode(errors="surrogatepass"))


def _paths(name: str, *groups: str) -> tuple[str, ...]:
    """`name` at the top level and in groups: `_paths("year", "metadata")` is `year`, `metadata.year`."""
    return (name, *(f"{group}.{name}" for group in groups))


def _window_end(record: Record, _: Values) -> int | None:
    groups = (group for group in (record, record.get("metadata"), record.get("span")) if isinstance(group, dict))
    moments = (values.seconds_from_milliseconds(group.get("occurred_at_end_ms")) for group in groups)
    return next((moment for moment in moments if moment is not None), None)


PROJECTION: tuple[FieldRule, ...] = (
    # --- identity ---------------------------------------------------------------------------------------------
    FieldRule("chunk_id", "the chunk's own id", derive=lambda r, _: r["chunk_id"]),
    FieldRule(
        "id",
        "`chunk_id` if it is 1 to 511 of A-Z a-z 0-9 _ - and does not begin with `h-`; else `h-` and its sha256",
        derive=lambda r, _: sink_id(r["chunk_id"]),
    ),
    FieldRule(
        "parent_id",
        "the family key: `parent_id` of the chunk, else sha256 of its normalised source, else sha256 of its "
        "`document_id`. If the chunk has a tenant, or this value is not 64 hex digits: a hash of tenant and value",
        derive=lambda r, _: identity.family_key(identity.parent_id(r), identity.tenant_id(r)),
        filter="equal",
    ),
    FieldRule("document_id", "id of one version of the source", derive=lambda r, _: r["document_id"]),
    FieldRule("tenant_id", "`tenant_id` of the chunk or of its metadata", derive=lambda r, _: identity.tenant_id(r)),
    FieldRule(
        "tenant_key",
        "sha256 of `tenant_id`; a search that is limited to a tenant filters by it",
        derive=lambda _, above: identity.tenant_key(above["tenant_id"]),
        filter="equal",
    ),
    FieldRule("schema_version", "version of the chunk format", ("schema_version",), filter="equal"),
    FieldRule(
        "chunk_index",
        "position in the document from 0; if missing, the position in the family, which is sorted by page, character "
        "and `chunk_id` (`c2` before `c10`)",
        (*_paths("chunk_index", "metadata", "span"), *_paths("index", "metadata"), *_paths("ordinal", "metadata")),
        values.count,
        filter="range",
    ),
    # --- content ----------------------------------------------------------------------------------------------
    FieldRule("text", "the unchanged text", ("text",), values.verbatim, derive=lambda *_: ""),
    FieldRule("text_hash", "`sha256:` and the hash of that text", derive=lambda _, above: text_hash(above["text"])),
    FieldRule(
        "title",
        "title of the document",
        ("title", "metadata.title", "content.title", "metadata.document_title", "source.title"),
        values.line,
        filter="equal",
    ),
    FieldRule(
        "headings",
        "headings above the chunk, outermost first; as in all lists, at most 256",
        (
            *_paths("headings", "metadata"),
            *_paths("headings_path", "metadata", "span"),
            *_paths("heading_path", "metadata"),
            "span.headings",
            "span.section",
            "span.section_path",
        ),
        values.lines,
    ),
    FieldRule(
        "language",
        "language as the producer names it",
        ("metadata.language", "content.language", "language", "metadata.lang"),
        values.facet,
        filter="equal",
    ),
    FieldRule(
        "tags",
        "labels without duplicates; a single string is split at commas, semicolons and line breaks",
        ("tags", "metadata.tags", "content.tags", "metadata.keywords", "metadata.topics"),
        values.labels,
        filter="equal",
    ),
    FieldRule(
        "authors",
        "people, from strings or from objects with `name` or `given` and `family`",
        ("authors", "metadata.authors", "metadata.author", "metadata.creator"),
        values.names,
        filter="equal",
    ),
    FieldRule(
        "year",
        "year of publication, from a number or the first four digits of a date",
        (
            *_paths("year", "metadata"),
            "metadata.publication_year",
            "metadata.publication_date",
            "metadata.published_at",
            "metadata.published",
            "metadata.date",
        ),
        values.year,
        filter="range",
    ),
    FieldRule(
        "content_truncated",
        "true if the producer reports that text was cut off",
        (
            "content_truncated",
            "content.content_truncated",
            "quality.is_truncated",
            "quality.content_truncated",
            "metadata.content_truncated",
        ),
        values.boolean,
        filter="equal",
    ),
    FieldRule(
        "token_count",
        "tokens as the chunker counted them",
        (*_paths("token_count", "tokens", "metadata"), "tokens.count", "tokens.total", "tokens"),
        values.count,
    ),
    # --- source -----------------------------------------------------------------------------------------------
    FieldRule(
        "source_uri",
        "name of the source; `provenance` comes first, as for `parent_id`",
        (
            "provenance.source_uri",
            "provenance.source_ref",
            "source.source_uri",
            "source.source_ref",
            "source.path",
            "source_uri",
            "source_ref",
            "metadata.source_uri",
            "metadata.source",
        ),
    ),
    FieldRule(
        "path",
        "path of the file; else the path in `source_uri`, if that has no scheme or the scheme `file:`",
        ("source.path", *_paths("path", "metadata"), "metadata.file_path"),
        derive=lambda _, above: values.path_of(above["source_uri"]) if above["source_uri"] else None,
        filter="pattern",
    ),
    FieldRule(
        "filename",
        "name of the file; else the last part of `path`, or of the URL",
        ("source.filename", *_paths("filename", "metadata"), "metadata.file_name"),
        values.line,
        derive=lambda _, above: values.line(values.filename_of(above["path"], above["source_uri"])),
        filter="pattern",
    ),
    FieldRule(
        "extension",
        "lower case, without the dot; else the ending of `filename`",
        ("source.extension", *_paths("extension", "metadata")),
        values.extension,
        derive=lambda _, above: values.extension_of(above["filename"]) if above["filename"] else None,
        filter="equal",
    ),
    FieldRule(
        "source_folder",
        "folder, at most 468 bytes (cut between characters); else the folder of `path`",
        ("source.source_folder", "source.folder", *_paths("source_folder", "metadata"), "metadata.folder"),
        values.facet,
        derive=lambda _, above: values.facet(values.folder_of(above["path"])) if above["path"] else None,
        filter="pattern",
    ),
    FieldRule(
        "source_type",
        "kind of source as the producer names it",
        ("source.source_type", "source.type", *_paths("source_type", "metadata", "provenance")),
        values.facet,
        filter="equal",
    ),
    FieldRule(
        "file_type",
        "kind of file; else `extension`",
        ("source.file_type", *_paths("file_type", "metadata")),
        values.facet,
        derive=lambda _, above: above["extension"],
        filter="equal",
    ),
    FieldRule(
        "mime_type",
        "media type",
        ("source.mime_type", *_paths("mime_type", "metadata"), "source.content_type", "metadata.content_type"),
        values.facet,
        filter="equal",
    ),
    FieldRule(
        "size_bytes",
        "size of the file",
        ("source.size_bytes", *_paths("size_bytes", "metadata"), "metadata.file_size"),
        values.count,
        filter="range",
    ),
    FieldRule(
        "modified_at_epoch",
        "last change of the source in UTC seconds (numbers from 10^11 are milliseconds); for recorded events the end "
        "of their time window, `occurred_at_end_ms`",
        (
            "source.modified_at_epoch",
            "source.modified_at",
            *_paths("modified_at_epoch", "metadata"),
            *_paths("modified_at", "metadata"),
            "metadata.last_modified",
            "metadata.modified",
        ),
        values.epoch,
        derive=_window_end,
        filter="range",
    ),
    # --- position in the source -------------------------------------------------------------------------------
    FieldRule(
        "page_start",
        "first page",
        (
            "span.pages.page_start",
            "span.page_start",
            "locator.page_start",
            "locator.page_number",
            *_paths("page_start", "metadata"),
            *_paths("page_number", "metadata"),
        ),
        values.first_count,
        filter="range",
    ),
    FieldRule(
        "page_end",
        "last page; else the first",
        ("span.pages.page_end", "span.page_end", "locator.page_end", *_paths("page_end", "metadata")),
        values.last_count,
        derive=lambda _, above: above["page_start"],
        filter="range",
    ),
    FieldRule(
        "slide_number", "slide", ("locator.slide_number", "span.slide_number", "metadata.slide_number"), values.count
    ),
    FieldRule("sheet_name", "sheet", ("locator.sheet_name", "span.sheet_name", "metadata.sheet_name"), values.line),
    FieldRule(
        "timestamp_start",
        "seconds from the beginning of a recording, to the millisecond",
        ("locator.timestamp_start", "span.timestamp_start", "metadata.timestamp_start"),
        values.seconds,
    ),
    FieldRule(
        "timestamp_end",
        "seconds from the beginning of a recording, to the millisecond",
        ("locator.timestamp_end", "span.timestamp_end", "metadata.timestamp_end"),
        values.seconds,
    ),
    FieldRule("speaker", "name of the speaker", ("locator.speaker", "span.speaker", "metadata.speaker"), values.line),
    FieldRule(
        "section",
        "path of the sections that contain the chunk, as one line",
        (*_paths("chunk_path", "metadata", "span"), "span.section", "span.section_path", "metadata.section"),
        values.chain,
    ),
    FieldRule(
        "anchor",
        "id of the element in the source: TEI, HTML, the `{#id}` of a heading in Markdown, `L41` for a line of a text "
        "file without headings",
        ("span.tei", "span.anchor", "locator.anchor", "metadata.anchor"),
        values.anchor,
    ),
    FieldRule(
        "char_start",
        "position of the first character in the text of the source",
        ("span.char_range.char_start", "span.char_start", *_paths("char_start", "metadata")),
        values.first_count,
    ),
    FieldRule(
        "char_end",
        "position after the last character",
        ("span.char_range.char_end", "span.char_end", *_paths("char_end", "metadata")),
        values.last_count,
    ),
    FieldRule(
        "start_offset",
        "first position in an append log as `segment/ordinal/byte`",
        _paths("start_offset", "span", "locator", "metadata"),
        values.offset,
    ),
    FieldRule(
        "end_offset",
        "last position in an append log as `segment/ordinal/byte`",
        _paths("end_offset", "span", "locator", "metadata"),
        values.offset,
    ),
    # --- added by FieldSet.project ---------------------------------------------------------------------------
    FieldRule("fields", "the custom fields (`[fields.NAME]`) that have a value"),
    FieldRule("fields_text", "the values of custom fields that keyword search finds, one per line"),
    FieldRule(
        "metadata", "the strings, numbers and booleans of the metadata that are in no other field, as a JSON object"
    ),
    # --- added by project_family ------------------------------------------------------------------------------
    FieldRule("previous_id", "`id` of the previous chunk, in the order of `chunk_index`"),
    FieldRule("next_id", "`id` of the next chunk, in the order of `chunk_index`"),
    FieldRule("document_hash", "hash of all fields above, with `text_hash` instead of the text"),
)

GROUPS = frozenset(
    path[:end] for rule in PROJECTION for path in rule.paths for end in range(len(path)) if path[end] == "."
)
"""Paths of the objects in which the rules look for values, such as `metadata` and `span.pages`."""


def values_by_path(record: Record) -> Values:
    """The values of a chunk by dotted path, so that the record is walked once and not for each rule."""
    by_path: Values = {}
    groups: list[tuple[str, Any]] = [("", record)]
    for prefix, group in groups:
        for name, value in group.items():
            if "." in name:  # no rule can address it
                continue
            path = prefix + name
            by_path[path] = value
            if path in GROUPS and isinstance(value, dict):
                groups.append((path + ".", value))
    return by_path


FILTERS: Mapping[str, str] = {rule.name: rule.filter for rule in PROJECTION if rule.filter}
"""Fields that readers can filter by: all by value, `range` also by bounds, `pattern` also by patterns."""

WHOLE = frozenset(rule.name for rule in PROJECTION if rule.filter and rule.read in (values.string, values.line))
"""Filterable fields whose text is stored uncut. The text of other filterable fields is cut at 468 bytes."""

SORTABLE = ("chunk_index", "filename", "modified_at_epoch", "page_start", "path", "size_bytes", "title", "year")

VALUE_TYPES: Mapping[str, type] = {
    rule.name: int if rule.filter == "range" else bool if rule.read is values.boolean else str
    for rule in PROJECTION
    if rule.filter
}
"""The type of the values of each field in `FILTERS`; for a list, of its members."""
