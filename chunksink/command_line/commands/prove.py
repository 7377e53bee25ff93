"""`chunksink prove`: a report of the index that a second machine can reproduce."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import orjson

from chunksink.command_line.exits import Exit, Refusal
from chunksink.command_line.options import SharedOptions, index_options, open_index
from chunksink.command_line.output import Note, echo
from chunksink.command_line.summary import recall_lines
from chunksink.proof import VERSION, proof_of


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@index_options
@click.option("--check", is_flag=True, help="Compare with the report in FILE instead of writing it.")
@click.option("--deep", is_flag=True, help="Also compare every vector with the cached one of its text.")
def command(shared: SharedOptions, file: Path, check: bool, deep: bool) -> int:
    """Write to FILE what the index was made from and what the engines contain.

    FILE has checksums of the partitions, counts, the model's fingerprint, a hash of Meilisearch's index settings, and a
    digest of each sink, read from the engine. Nothing in it depends on the machine, the home or the time: the same
    chunks with the same configuration give the same file. An index that differs from the chunks is refused. The recall
    of each vector search is printed but not written, since it may differ a little between builds of the same chunks.

    \b
    Examples:
      chunksink prove index.json
      chunksink prove index.json --check
    """
    saved = _read(file) if check else None
    if not file.absolute().parent.is_dir():
        raise Refusal(f"there is no folder for {file}; make its folder first, or name another one", Exit.USAGE)
    with open_index(shared) as index:
        report = index.verify(deep=deep, recall=True)
        proof = proof_of(index.config, report)
    recalls = [line for name, sink in report.sinks.items() for line in recall_lines(name, sink.recall)]
    if saved is None:
        options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
        file.write_bytes(orjson.dumps(proof, option=options))
        echo([*recalls, f"wrote {file}, a proof of {', '.join(report.sinks)}"])
        return Exit.OK
    differences = [Note(line) for line in _differences(saved, proof, "")]
    echo([*recalls, *differences, f"{file} {'does not match' if differences else 'matches'} what the engines contain"])
    return Exit.DRIFT if differences else Exit.OK


def _read(file: Path) -> dict[str, Any]:
    try:
        proof = orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise Refusal(f"{file} cannot be read as a proof: {error}", Exit.USAGE) from error
    if not isinstance(proof, dict) or proof.get("schema_version") != VERSION:
        raise Refusal(f"{file} is not a proof in the format {VERSION}", Exit.USAGE)
    return proof


def _differences(saved: Any, current: Any, place: str) -> Iterator[str]:
    if isinstance(saved, dict) and isinstance(current, dict):
        for name in sorted(saved.keys() | current.keys()):
            yield from _differences(saved.get(name), current.get(name), f"{place}.{name}" if place else name)
    elif saved != current:
        yield f"{place}: {saved} in the proof, {current} here"
