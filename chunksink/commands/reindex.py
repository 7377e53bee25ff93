"""`chunksink reindex`: which IR records an older extractor has made, so that their sources can be extracted again."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chunksink.exits import Exit
from chunksink.options import json_option
from chunksink.output import counted, print_json, printable

if TYPE_CHECKING:
    from chunksink.chunkbus.chunk import Record
    from chunksink.ingest.formats.ir.reindex import Current, Outdated

_SUFFIXES = (".jsonl", ".ndjson", ".json")


def _pairs(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = dict(each.partition("=")[::2] for each in given)
    if "" in pairs or "" in pairs.values():
        raise click.BadParameter("write it as NAME=VALUE")
    return pairs


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH...")
@click.option("--schema", metavar="VERSION", help="The schema that records should have.  [default: the newest]")
@click.option(
    "--extractor", "extractors", multiple=True, metavar="NAME=VERSION", callback=_pairs, help="What it is at now."
)
@click.option(
    "--model", "models", multiple=True, metavar="PART=VALUE", callback=_pairs, help="As `asr_model=large-v3`."
)
@click.option("--paths", "only_paths", is_flag=True, help="Print the paths of the sources alone, one a line.")
@json_option
def command(
    files: tuple[Path, ...],
    schema: str | None,
    extractors: dict[str, str],
    models: dict[str, str],
    only_paths: bool,
    as_json: bool,
) -> int:
    """List IR records that an older schema, extractor or model has made: PATH is a file of records, or a folder.

    What is not said here is current where it is the newest that these records know. Extract the sources again with
    what made them, ingest the new records, and the chunks of the old ones are replaced. Exits with 3 when something
    is no record; the others are looked at.

    \b
    Examples:
      chunksink reindex records/
      chunksink reindex records/ --extractor pdftext=2.1 --paths | xargs -d '\\n' my-extractor --to records/new.jsonl
      chunksink ingest records/ --as ir --sync
    """
    from chunksink.ingest.formats.ir.reindex import newest, outdated

    said: list[str] = []
    current = newest(_records(files, said.append))
    current = replace(
        current,
        schema_version=schema or current.schema_version,
        extractors={**current.extractors, **extractors},
        models={**current.models, **models},
    )
    found = _by_source(outdated(_records(files, lambda _: None), current))
    if as_json:
        print_json({"current": asdict(current), "outdated": list(found.values()), "failures": said})
    elif only_paths:
        for path in found:
            click.echo(path)
    else:
        _print(found, current)
    if not as_json:
        for line in said:
            click.echo(line, err=True)
    return Exit.INVALID_INPUT if said else Exit.OK


def _records(files: tuple[Path, ...], tell: Callable[[str], object]) -> Iterator["Record"]:
    from chunksink.ingest.errors import SourceFailed
    from chunksink.ingest.formats.ir.reindex import read_ir
    from chunksink.ingest.model import Notice

    for path in _files(files):
        try:
            for read in read_ir(path):
                if isinstance(read, Notice):
                    line = "" if read.line is None else f", line {read.line}"
                    tell(f"{printable(str(path))}{line}: {read.code}: {printable(read.reason)}")
                elif isinstance(read.record.get("provenance"), dict):  # other records may lie beside them
                    yield read.record
        except SourceFailed as failed:
            tell(f"{printable(str(path))}: {failed.code}: {printable(failed.reason)}")


def _files(paths: tuple[Path, ...]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(each for each in path.rglob("*") if each.suffix.lower() in _SUFFIXES and each.is_file())
        else:
            yield path


def _by_source(outdated: Iterator["Outdated"]) -> dict[str, dict[str, Any]]:
    """Records of one source are extracted together."""
    found: dict[str, dict[str, Any]] = {}
    for one in outdated:
        entry = found.setdefault(one.path, {"path": one.path, "records": 0, "differences": []})
        entry["records"] += 1
        for what, has, now in one.differences:
            difference = {"what": what, "has": has, "current": now}
            if difference not in entry["differences"]:
                entry["differences"].append(difference)
    return found


def _print(found: dict[str, dict[str, Any]], current: "Current") -> None:
    for path, entry in found.items():
        told = "; ".join(f"{each['what']} {each['has']}, now {each['current']}" for each in entry["differences"])
        click.echo(f"{printable(path)}: {counted(entry['records'], 'record')}: {printable(told)}")
    versions = {**current.extractors, **current.models}
    known = ", ".join(f"{name} {value}" for name, value in sorted(versions.items()) if name)
    click.echo(
        f"{counted(len(found), 'source')} to extract again; current is schema {current.schema_version}"
        f"{f', {printable(known)}' if known else ''}",
        err=True,
    )
