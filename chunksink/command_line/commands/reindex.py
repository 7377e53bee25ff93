"""`chunksink reindex`: lists extractor records that are out of date, so that their sources can be extracted again."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.wording import counted, printable
from chunksink.command_line.exits import Exit
from chunksink.command_line.options import json_option
from chunksink.command_line.output import Note, show
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.ir.reindex import Current, Outdated, newest, outdated
from chunksink.ingest.json_records import read_records
from chunksink.ingest.model import Notice

_SUFFIXES = (".jsonl", ".ndjson", ".json")


def _pairs(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = dict(each.partition("=")[::2] for each in values)
    if "" in pairs or "" in pairs.values():
        raise click.BadParameter("write it as NAME=VALUE")
    return pairs


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH...")
@click.option("--schema", metavar="VERSION", help="The current schema version.  [default: the newest]")
@click.option(
    "--extractor",
    "extractors",
    multiple=True,
    metavar="NAME=VERSION",
    callback=_pairs,
    help="The current version of an extractor; may be repeated.  [default: the newest among the records]",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="PART=VALUE",
    callback=_pairs,
    help="A current model, such as asr_model=large-v3; may be repeated.  [default: the newest among the records]",
)
@click.option("--paths", "only_paths", is_flag=True, help="Print the paths of the sources alone, one per line.")
@json_option
def command(
    files: tuple[Path, ...],
    schema: str | None,
    extractors: dict[str, str],
    models: dict[str, str],
    only_paths: bool,
    as_json: bool,
) -> int:
    """List sources whose extractor records (those of `ingest --as ir`) are out of date: they have an older schema, or
    were not made by the current version of the extractor or the current model. PATH is a file of records, or a folder.
    Nothing is changed.

    Extract the listed sources again with your extractor, put the new records in place of the old ones, and ingest them.
    If two files have records of the same source, only the file whose name sorts last counts. Exits with 3 if a file or
    line is not a record; the others are still examined.

    \b
    Examples:
      chunksink reindex records/
      chunksink reindex records/ --extractor pdftext=2.1 --paths | xargs -d '\\n' my-extractor --update records/
      chunksink ingest records/ --as ir --sync
    """
    failures: list[str] = []
    newest_of_all = newest(_records(files, failures.append))
    current = replace(
        newest_of_all,
        schema_version=schema or newest_of_all.schema_version,
        extractors={**newest_of_all.extractors, **extractors},
        models={**newest_of_all.models, **models},
    )
    found = _by_source(outdated(_records(files, lambda _: None), current))
    document = {"current": asdict(current), "outdated": list(found.values()), "failures": failures}
    lines = list(found) if only_paths else _lines(found, current)
    show(as_json, document, [*lines, *map(Note, failures)])
    return Exit.INVALID_INPUT if failures else Exit.OK


def _records(files: tuple[Path, ...], report: Callable[[str], object]) -> Iterator[Record]:
    for path in _files(files):
        try:
            for read in read_records(path, lambda _: True):  # of any schema version
                if isinstance(read, Notice):
                    line = "" if read.line is None else f", line {read.line}"
                    report(f"{printable(str(path))}{line}: {read.code}: {printable(read.reason)}")
                elif isinstance(read.record.get("provenance"), dict):  # other records may be in the same file
                    yield read.record
        except SourceFailed as failed:
            report(f"{printable(str(path))}: {failed.code}: {printable(failed.reason)}")


def _files(paths: tuple[Path, ...]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(each for each in path.rglob("*") if each.suffix.lower() in _SUFFIXES and each.is_file())
        else:
            yield path


def _by_source(outdated: Iterator[Outdated]) -> dict[str, dict[str, Any]]:
    """One entry per source, since its records are extracted together."""
    found: dict[str, dict[str, Any]] = {}
    for one in outdated:
        entry = found.setdefault(one.path, {"path": one.path, "records": 0, "differences": []})
        entry["records"] += 1
        for what, has, now in one.differences:
            difference = {"what": what, "has": has, "current": now}
            if difference not in entry["differences"]:
                entry["differences"].append(difference)
    return found


def _lines(found: dict[str, dict[str, Any]], current: Current) -> Iterator[str]:
    for path, entry in found.items():
        differences = "; ".join(f"{one['what']} {one['has']}, now {one['current']}" for one in entry["differences"])
        yield f"{printable(path)}: {counted(entry['records'], 'record')}: {printable(differences)}"
    versions = sorted({**current.extractors, **current.models}.items())
    known = "".join(f", {printable(name)} {printable(value)}" for name, value in versions if name)
    extract = f"{counted(len(found), 'source')} to extract again"
    yield Note(f"{extract}; current is schema {current.schema_version}{known}")
