"""What an index was made from and what its engines hold, in a form that another machine can reproduce."""

from typing import Any

from chunksink.chunkbus.canonical import bare_hex, json_hash
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.errors import InvalidBus, NotVerified
from chunksink.rebuild.state import State
from chunksink.rebuild.verify import VerifyReport
from chunksink.settings.config import Config
from chunksink.settings.index_settings import find_settings_file, load_index_settings
from chunksink.sinks.errors import SinkError
from chunksink.sinks.projection import PROJECTION_VERSION

VERSION = "chunksink.proof.v1"


def proof_of(config: Config, found: VerifyReport) -> dict[str, Any]:
    """The proof of an index that was just verified.

    SinkError where an engine could not be asked, NotVerified where one differs from the chunks, InvalidBus while chunks
    are missing: nobody could reproduce it."""
    if found.unknown:
        errors = "\n".join(f"{name}: {error}" for name, error in found.unknown.items())
        raise SinkError(f"not every engine could be asked, so nothing is proved\n{errors}")
    if not found.ok:
        raise NotVerified("the engines differ from the chunks, so there is nothing to prove: see `chunksink verify`")
    with State.existing(config.home_path) as state:
        Catalog(state).require_valid()
    if found.unread or found.held:
        raise InvalidBus("the chunks were not whole when the engines were compared with them: prove it again")
    return {
        "schema_version": VERSION,
        "partitions": {
            each.partition: {"chunks": each.chunks, "sha256": bare_hex(each.checksum) or each.checksum}
            for each in found.inputs
        },
        "projection_version": PROJECTION_VERSION,
        "model": {"fingerprint": found.live.model.fingerprint, "dimension": found.live.model.dimension_in_index},
        "settings": _settings_hash(config) if "meilisearch" in found.sinks else None,
        "sinks": {
            name: {
                "families": sink.families,
                "chunks": sink.chunks,
                "refused": sorted(sink.refused),
                "digest": sink.digest,
            }
            for name, sink in sorted(found.sinks.items())
        },
    }


def _settings_hash(config: Config) -> str:
    file = config.sink.get("meilisearch", {}).get("settings_file")
    return json_hash(load_index_settings(find_settings_file(file)))
