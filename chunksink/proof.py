"""The proof of an index: what it was made from and what the engines hold, without a word about where or when."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from chunksink.chunkbus.canonical import bare_hex, json_hash
from chunksink.cli_errors import Refusal
from chunksink.exits import Exit
from chunksink.settings.config import Config
from chunksink.settings.index_settings import find_settings_file, load_index_settings

if TYPE_CHECKING:
    from chunksink.rebuild.verify import Verified

_VERSION = "chunksink.proof.v1"


def prove(config: Config, found: "Verified") -> dict[str, Any]:
    """Of an index that was just verified, and of the chunks with which it was compared, whatever the bus says since.
    InvalidBus while chunks are missing: nobody could make it again."""
    from chunksink.rebuild.catalog import Catalog
    from chunksink.rebuild.errors import InvalidBus
    from chunksink.rebuild.state import State
    from chunksink.sinks.projection import PROJECTION_VERSION

    with State.existing(config.home_path) as state:
        Catalog(state).require_valid()
    if found.unread or found.held:
        raise InvalidBus("the chunks were not whole when the engines were compared with them: prove it again")
    return {
        "schema_version": _VERSION,
        "partitions": {
            each.partition: {"chunks": each.chunks, "sha256": bare_hex(each.checksum) or each.checksum}
            for each in found.inputs
        },
        "projection_version": PROJECTION_VERSION,
        "model": {"fingerprint": found.live.model.fingerprint, "dimension": found.live.model.dimension},
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


def write_proof(file: Path, proof: Mapping[str, Any]) -> None:
    file.write_bytes(orjson.dumps(proof, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))


def read_proof(file: Path) -> dict[str, Any]:
    try:
        proof = orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise Refusal(f"{file} cannot be read as a proof: {error}", Exit.USAGE) from error
    if not isinstance(proof, dict) or proof.get("schema_version") != _VERSION:
        raise Refusal(f"{file} is no proof that this chunksink wrote ({_VERSION})", Exit.USAGE)
    return proof


def differences(known: Any, here: Any, place: str = "") -> list[str]:
    """What differs, a line each."""
    if isinstance(known, dict) and isinstance(here, dict):
        return [
            line
            for name in sorted(known.keys() | here.keys())
            for line in differences(known.get(name), here.get(name), f"{place}.{name}" if place else name)
        ]
    return [] if known == here else [f"{place}: {known} in the proof, {here} here"]


def _settings_hash(config: Config) -> str:
    file = config.sink.get("meilisearch", {}).get("settings_file")
    return json_hash(load_index_settings(find_settings_file(file)))
