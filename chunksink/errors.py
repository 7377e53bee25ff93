"""Every error that a caller of chunksink may want to catch.

    ChunksinkError
    ├── ConfigError              the configuration cannot be used
    │   └── UnusableSettings     the index settings of Meilisearch cannot be used
    ├── ChunkBusError            chunks on disk
    │   ├── NotABusRoot, InvalidPartitionKey, InvalidChunk, InvalidManifest, NotCanonical
    │   ├── PartitionChanged     the partition was rewritten while it was read: read it again
    │   ├── PartitionLocked      another process is writing the partition: try again later
    │   ├── ExtraMissing         a package for buckets, vector segments, Ray, metrics or MCP is not installed
    │   ├── StorageError         a bucket cannot be reached or refuses a request
    │   │   └── StorageDenied, StorageEndpointInvalid, StorageConflict
    │   └── StoreUnreadable, NewerStore    a database of chunksink is damaged, or written by a newer version
    ├── IngestError              reading sources and writing their chunks
    │   ├── IngestRefused        the run stopped before it wrote anything
    │   │   ├── IngestBrake      it would remove a large share of the chunks
    │   │   └── ReaderKilled     a process that reads files was killed
    │   └── IngestBusy           another ingest is using the home
    ├── RebuildError             building an index
    │   ├── InvalidBus           chunks break the contract
    │   ├── NoGeneration         there is no live index, or no previous one to roll back to
    │   │   └── NothingBuilt     this home has never had an index: call `sync()`
    │   ├── HomeLocked           another run is writing to this home
    │   ├── BackupUnreadable     a file is not a backup, or is incomplete or damaged
    │   ├── HomeNotEmpty         a restore would replace records: call it with `force`
    │   ├── Brake                the run would remove a large share of the index
    │   ├── NotVerified          an engine differs from the chunks, or the chunks kept changing during a rebuild
    │   ├── WorseAnswers         the new index answers worse than the live one, which is unchanged
    │   ├── ComputeError         workers on Ray failed: run it again
    │   ├── OtherBus             the index was made from another folder of chunks: nothing was read
    │   ├── OtherModel, OtherHome, OtherPlan, UnknownPlan
    │   ├── UnknownSource, SeveralSources, UnknownChunk, UnknownRun, UnknownSink
    │   └── NotMissing           the partition to retire is still there
    ├── SearchError              searching
    │   ├── InvalidQuestion      the query, a filter or another argument is not valid
    │   └── NothingAnswered      no engine could answer (raised by retrievers)
    ├── EmbeddingsError          models, endpoints and the vector cache
    │   ├── ModelError           the model cannot be used
    │   ├── EndpointError        the embedding service cannot be used
    │   │   └── EndpointChanged  it now computes different vectors under the same model name
    │   └── CacheError           the vector cache cannot be used
    └── SinkError                search engines
        ├── Transient            the same call may work later
        │   └── Unreachable, NotConfirmed
        └── Refused              the engine refuses the call until something is changed
            └── WrongKey, BuildMissing, BuildBroken, OutOfResources, InvalidFilter

Problems in the data itself are findings in a report, not exceptions. Other exceptions are an OSError, a TypeError or
RuntimeError for a wrong call, or a bug.
"""

from chunksink.chunkbus.errors import ChunkBusError as ChunkBusError
from chunksink.chunkbus.errors import ChunksinkError as ChunksinkError
from chunksink.chunkbus.errors import ExtraMissing as ExtraMissing
from chunksink.chunkbus.errors import InvalidChunk as InvalidChunk
from chunksink.chunkbus.errors import InvalidManifest as InvalidManifest
from chunksink.chunkbus.errors import InvalidPartitionKey as InvalidPartitionKey
from chunksink.chunkbus.errors import NewerStore as NewerStore
from chunksink.chunkbus.errors import NotABusRoot as NotABusRoot
from chunksink.chunkbus.errors import NotCanonical as NotCanonical
from chunksink.chunkbus.errors import PartitionChanged as PartitionChanged
from chunksink.chunkbus.errors import PartitionLocked as PartitionLocked
from chunksink.chunkbus.errors import StorageConflict as StorageConflict
from chunksink.chunkbus.errors import StorageDenied as StorageDenied
from chunksink.chunkbus.errors import StorageEndpointInvalid as StorageEndpointInvalid
from chunksink.chunkbus.errors import StorageError as StorageError
from chunksink.chunkbus.errors import StoreUnreadable as StoreUnreadable
from chunksink.embeddings.errors import CacheError as CacheError
from chunksink.embeddings.errors import EmbeddingsError as EmbeddingsError
from chunksink.embeddings.errors import EndpointChanged as EndpointChanged
from chunksink.embeddings.errors import EndpointError as EndpointError
from chunksink.embeddings.errors import ModelError as ModelError
from chunksink.ingest.errors import IngestBrake as IngestBrake
from chunksink.ingest.errors import IngestBusy as IngestBusy
from chunksink.ingest.errors import IngestError as IngestError
from chunksink.ingest.errors import IngestRefused as IngestRefused
from chunksink.ingest.errors import ReaderKilled as ReaderKilled
from chunksink.rebuild.errors import BackupUnreadable as BackupUnreadable
from chunksink.rebuild.errors import Brake as Brake
from chunksink.rebuild.errors import ComputeError as ComputeError
from chunksink.rebuild.errors import HomeLocked as HomeLocked
from chunksink.rebuild.errors import HomeNotEmpty as HomeNotEmpty
from chunksink.rebuild.errors import InvalidBus as InvalidBus
from chunksink.rebuild.errors import NoGeneration as NoGeneration
from chunksink.rebuild.errors import NothingBuilt as NothingBuilt
from chunksink.rebuild.errors import NotMissing as NotMissing
from chunksink.rebuild.errors import NotVerified as NotVerified
from chunksink.rebuild.errors import OtherBus as OtherBus
from chunksink.rebuild.errors import OtherHome as OtherHome
from chunksink.rebuild.errors import OtherModel as OtherModel
from chunksink.rebuild.errors import OtherPlan as OtherPlan
from chunksink.rebuild.errors import RebuildError as RebuildError
from chunksink.rebuild.errors import SeveralSources as SeveralSources
from chunksink.rebuild.errors import UnknownChunk as UnknownChunk
from chunksink.rebuild.errors import UnknownPlan as UnknownPlan
from chunksink.rebuild.errors import UnknownRun as UnknownRun
from chunksink.rebuild.errors import UnknownSink as UnknownSink
from chunksink.rebuild.errors import UnknownSource as UnknownSource
from chunksink.rebuild.errors import WorseAnswers as WorseAnswers
from chunksink.search.errors import InvalidQuestion as InvalidQuestion
from chunksink.search.errors import NothingAnswered as NothingAnswered
from chunksink.search.errors import SearchError as SearchError
from chunksink.settings.errors import ConfigError as ConfigError
from chunksink.settings.errors import UnusableSettings as UnusableSettings
from chunksink.sinks.errors import BuildBroken as BuildBroken
from chunksink.sinks.errors import BuildMissing as BuildMissing
from chunksink.sinks.errors import InvalidFilter as InvalidFilter
from chunksink.sinks.errors import NotConfirmed as NotConfirmed
from chunksink.sinks.errors import OutOfResources as OutOfResources
from chunksink.sinks.errors import Refused as Refused
from chunksink.sinks.errors import SinkError as SinkError
from chunksink.sinks.errors import Transient as Transient
from chunksink.sinks.errors import Unreachable as Unreachable
from chunksink.sinks.errors import WrongKey as WrongKey
