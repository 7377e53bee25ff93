"""Every error that a caller of chunksink may want to catch.

    ChunksinkError
    ├── ConfigError              the configuration cannot be used
    │   └── UnusableSettings     the index settings of Meilisearch cannot be used
    ├── ChunkBusError            chunks on disk
    │   ├── NotABusRoot, InvalidPartitionKey, InvalidChunk, InvalidManifest, NotCanonical
    │   ├── PartitionChanged     the partition was rewritten while it was read: read it again
    │   ├── PartitionLocked      another process is writing the partition: try again later
    │   └── StoreUnreadable, NewerStore    a database of chunksink is damaged, or written by a newer version
    ├── IngestError              sources that cannot become chunks
    │   ├── IngestRefused        the run could not start; nothing was written
    │   └── IngestBusy           another ingest is using the home
    ├── RebuildError             building an index
    │   ├── InvalidBus           chunks break the contract
    │   ├── NoGeneration         nothing was built yet: call `sync()`
    │   │   └── NothingBuilt     ... and nothing was built before either
    │   ├── HomeLocked           another run is writing to this home
    │   ├── Brake                the run would remove a large share of the index
    │   ├── NotVerified          the engine does not hold what was written; the live index is unchanged
    │   ├── OtherModel, OtherHome, OtherPlan, UnknownPlan
    │   └── UnknownSource, SeveralSources, NotMissing
    ├── SearchError              searching
    │   ├── InvalidQuestion      the query cannot be asked like this
    │   └── NothingAnswered      no engine could answer (raised by retrievers)
    ├── EmbeddingsError          models, endpoints and the vector cache
    │   ├── ModelError           the model cannot be used
    │   ├── EndpointError        the embedding service cannot be used
    │   └── CacheError           the vector cache cannot be used
    └── SinkError                search engines
        ├── Transient            the same call may work later
        │   └── Unreachable, NotConfirmed
        └── Refused              the same call will never work
            └── WrongKey, BuildMissing, BuildBroken, WrongShape, InvalidFilter

Problems in the data itself are findings in a report, not exceptions. Any other exception is a bug.
"""

from chunksink.chunkbus.errors import (
    ChunkBusError,
    ChunksinkError,
    InvalidChunk,
    InvalidManifest,
    InvalidPartitionKey,
    NewerStore,
    NotABusRoot,
    NotCanonical,
    PartitionChanged,
    PartitionLocked,
    StoreUnreadable,
)
from chunksink.embeddings.errors import CacheError, EmbeddingsError, EndpointError, ModelError
from chunksink.ingest.errors import IngestBusy, IngestError, IngestRefused
from chunksink.rebuild.errors import (
    Brake,
    HomeLocked,
    InvalidBus,
    NoGeneration,
    NothingBuilt,
    NotMissing,
    NotVerified,
    OtherHome,
    OtherModel,
    OtherPlan,
    RebuildError,
    SeveralSources,
    UnknownPlan,
    UnknownSource,
)
from chunksink.search.errors import InvalidQuestion, NothingAnswered, SearchError
from chunksink.settings.config import ConfigError
from chunksink.settings.index_settings import UnusableSettings
from chunksink.sinks.errors import (
    BuildBroken,
    BuildMissing,
    InvalidFilter,
    NotConfirmed,
    Refused,
    SinkError,
    Transient,
    Unreachable,
    WrongKey,
    WrongShape,
)

__all__ = [
    "Brake",
    "BuildBroken",
    "BuildMissing",
    "CacheError",
    "ChunkBusError",
    "ChunksinkError",
    "ConfigError",
    "EmbeddingsError",
    "EndpointError",
    "HomeLocked",
    "IngestBusy",
    "IngestError",
    "IngestRefused",
    "InvalidBus",
    "InvalidChunk",
    "InvalidFilter",
    "InvalidManifest",
    "InvalidPartitionKey",
    "InvalidQuestion",
    "ModelError",
    "NewerStore",
    "NoGeneration",
    "NotABusRoot",
    "NotCanonical",
    "NotConfirmed",
    "NotMissing",
    "NotVerified",
    "NothingAnswered",
    "NothingBuilt",
    "OtherHome",
    "OtherModel",
    "OtherPlan",
    "PartitionChanged",
    "PartitionLocked",
    "RebuildError",
    "Refused",
    "SearchError",
    "SeveralSources",
    "SinkError",
    "StoreUnreadable",
    "Transient",
    "UnknownPlan",
    "UnknownSource",
    "Unreachable",
    "UnusableSettings",
    "WrongKey",
    "WrongShape",
]
