"""sinks: where indexes are written. Families of documents go in, confirmed by the engine, no gap and no orphan."""

from chunksink.sinks.contract import NO_PARENT, Build, Marker, RefusedDocument, Sink, Stored
from chunksink.sinks.document import Document, Family, Vectors
from chunksink.sinks.errors import BuildBroken, BuildMissing, NotConfirmed, Refused, SinkError, Transient, Unreachable
from chunksink.sinks.fields import FILTERS, PROJECTION, FieldRule, sink_id
from chunksink.sinks.projection import PROJECTION_VERSION, project_family
from chunksink.sinks.reader import FacetValue, Filter, Hit, KeywordReader, Piece, VectorReader

__all__ = [
    "FILTERS",
    "NO_PARENT",
    "PROJECTION",
    "PROJECTION_VERSION",
    "Build",
    "BuildBroken",
    "BuildMissing",
    "Document",
    "FacetValue",
    "Family",
    "FieldRule",
    "Filter",
    "Hit",
    "KeywordReader",
    "Marker",
    "NotConfirmed",
    "Piece",
    "Refused",
    "RefusedDocument",
    "Sink",
    "SinkError",
    "Stored",
    "Transient",
    "Unreachable",
    "VectorReader",
    "Vectors",
    "project_family",
    "sink_id",
]
