"""What an index was made from and what its engines contain, in a form that another machine can reproduce."""

from typing import TYPE_CHECKING, Any

from chunksink.chunkbus.canonical import bare_hex, json_hash
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.errors import InvalidBus, NotVerified
from chunksink.rebuild.state import State
from chunksink.settings.config import Config
from chunksink.sinks.errors import SinkError
from chunksink.sinks.projection import PROJECTION_VERSION

if TYPE_CHECKING:
    from chunksink.rebuild.verify import VerifyReport

VERSION = "chunksink.proof.v1"


def proof_of(config: Config, report: "VerifyReport") -> dict[str, Any]:
    """The proof of an index that was just verified.

    Raises SinkError if an engine does not answer, NotVerified if one differs from the chunks, and InvalidBus if chunks
    are missing or invalid, since the proof could not be reproduced then."""
    if report.unknown:
        errors = "\n".join(f"{name}: {error}" for name, error in report.unknown.items())
        raise SinkError(f"not every engine answered, so nothing is proved\n{errors}")
    if not report.ok:
        raise NotVerified("the engines differ from the chunks, so there is nothing to prove: see `chunksink verify`")
    with State.existing(config.home_path) as state:
        Catalog(state).require_valid()
    if report.unread or report.held:
        raise InvalidBus("chunks were missing or invalid during the comparison: try again")
    return {
        "schema_version": VERSION,
        "partitions": {
            each.partition: {"chunks": each.chunks, "sha256": bare_hex(each.checksum) or each.checksum}
            for each in report.inputs
        },
        "projection_version": PROJECTION_VERSION,
        "model": {"fingerprint": report.live.model.fingerprint, "dimension": report.live.model.dimension_in_index},
        "settings": _meilisearch_settings_hash(config) if "meilisearch" in report.sinks else None,
        "sinks": {
            name: {
                "families": sink.families,
                "chunks": sink.chunks,
                "refused": sorted(sink.refused),
                "digest": sink.digest,
            }
            for name, sink in sorted(report.sinks.items())
        },
    }


def _meilisearch_settings_hash(config: Config) -> str:
    from chunksink.sinks.meilisearch.index_settings import find_settings_file, load_index_settings

    file = find_settings_file(config.sink.get("meilisearch", {}).get("settings_file"))
    return json_hash(load_index_settings(file))
