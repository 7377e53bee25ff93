"""`chunksink prove`: a report of the index that a second machine can reproduce."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import orjson

from chunksink.chunkbus.canonical import bare_hex, json_hash
from chunksink.exits import Exit, Refusal
from chunksink.options import chunks_option, home_option, open_index
from chunksink.output import Note, echo
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.errors import InvalidBus
from chunksink.rebuild.state import State
from chunksink.rebuild.verify import VerifyReport
from chunksink.settings.config import Config
from chunksink.settings.index_settings import find_settings_file, load_index_settings
from chunksink.sinks.projection import PROJECTION_VERSION
from chunksink.summary import recall_lines

_VERSION = "chunksink.proof.v1"


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@chunks_option
@home_option
@click.option("--check", is_flag=True, help="Compare with the report in FILE instead of writing it.")
@click.option("--deep", is_flag=True, help="Also compare every vector with the cached one of its text.")
def command(file: Path, check: bool, deep: bool) -> int:
    """Write to FILE what the index was made from and what the engines hold.

    Checksums of the partitions, counts, the model's fingerprint, a hash of Meilisearch's index settings, and a digest
    of each sink, just read from the engine. Nothing in it depends on the machine, the home or the time: from the same
    chunks comes the same file. An index that differs from the chunks is not proved. How many of the nearest documents
    each search by vectors finds is printed, and not written: two builds of the same chunks may differ in it a little.

    \b
    Examples:
      chunksink prove index.json
      chunksink prove index.json --check
    """

    known = _read(file) if check else None
    with open_index() as index:
        found = index.verify(deep=deep, recall=True)
        if found.unknown:
            errors = "\n".join(f"{name}: {error}" for name, error in found.unknown.items())
            raise Refusal(f"not every engine could be asked, so nothing is proved\n{errors}", Exit.ENGINE)
        if not found.ok:
            differ = "the engines do not hold what the chunks say, so there is nothing to prove: see `chunksink verify`"
            raise Refusal(differ, Exit.DRIFT)
        proof = _proof(index.config, found)
    recalls = [line for name, sink in found.sinks.items() for line in recall_lines(name, sink.recall)]
    if known is None:
        options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
        file.write_bytes(orjson.dumps(proof, option=options))
        echo([*recalls, f"{file} proves {', '.join(found.sinks)}"])
        return Exit.OK
    wrong = [Note(line) for line in _differences(known, proof, "")]
    echo([*recalls, *wrong, f"{file} {'does not match' if wrong else 'matches'} what the engines hold"])
    return Exit.DRIFT if wrong else Exit.OK


def _proof(config: Config, found: VerifyReport) -> dict[str, Any]:
    """Of an index that was just verified, and of the chunks with which it was compared, whatever the bus says since.
    InvalidBus while chunks are missing: nobody could reproduce it."""
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


def _settings_hash(config: Config) -> str:
    file = config.sink.get("meilisearch", {}).get("settings_file")
    return json_hash(load_index_settings(find_settings_file(file)))


def _read(file: Path) -> dict[str, Any]:
    try:
        proof = orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise Refusal(f"{file} cannot be read as a proof: {error}", Exit.USAGE) from error
    if not isinstance(proof, dict) or proof.get("schema_version") != _VERSION:
        raise Refusal(f"{file} is no proof that this chunksink wrote ({_VERSION})", Exit.USAGE)
    return proof


def _differences(known: Any, here: Any, place: str) -> Iterator[str]:
    if isinstance(known, dict) and isinstance(here, dict):
        for name in sorted(known.keys() | here.keys()):
            yield from _differences(known.get(name), here.get(name), f"{place}.{name}" if place else name)
    elif known != here:
        yield f"{place}: {known} in the proof, {here} here"
