"""The Meilisearch sink: keyword search by a server, with vectors for its own hybrid search where they are wanted."""

from sinks.meilisearch.reader import MeilisearchReader
from sinks.meilisearch.sink import MeilisearchBuild, MeilisearchSink

__all__ = ["MeilisearchBuild", "MeilisearchReader", "MeilisearchSink"]
