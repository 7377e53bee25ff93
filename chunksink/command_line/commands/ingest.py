"""`chunksink ingest`: makes canonical chunks from documents."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import click

from chunksink.chunkbus.wording import counted, counts, more, printable, some
from chunksink.command_line.exits import Exit, Refusal
from chunksink.command_line.options import (
    SharedOptions,
    index_options,
    json_option,
    metrics_file_option,
    note_index,
    open_index,
)
from chunksink.command_line.output import Note, echo, print_json
from chunksink.command_line.progress import progress
from chunksink.command_line.summary import exit_code, print_report
from chunksink.ingest.codes import MEANINGS, ODD, WITH_REMEDY
from chunksink.ingest.discover import NO_SUFFIX, NOTEBOOK, OTHERS, TO_MARKDOWN
from chunksink.ingest.formats.markdown.policy import DEFAULT_POLICY, POLICIES
from chunksink.ingest.formats.registry import NAMES, all_formats
from chunksink.ingest.options import Options
from chunksink.ingest.report import IngestReport, folder_of

_SHOWN_FAILURES = 20
_SHOWN_SUFFIXES = 12
_SHOWN_NAMES = 3


class _SourcePath(click.Path):
    """Refuses an empty name, which usually comes from an unset variable in a script."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("an empty name is not a source: name a folder or a file ('.' is the current folder)", param, ctx)
        return super().convert(value, param, ctx)


@click.command()
@click.argument(
    "sources", nargs=-1, required=True, type=_SourcePath(path_type=Path, readable=False), metavar="SOURCE..."
)
@click.option(
    "--as",
    "format",
    default="auto",
    show_default=True,
    metavar="FORMAT",
    help=f"The format of the sources: auto, {', '.join(NAMES)}, or one of an installed package.",
)
@click.option(
    "--partition",
    default="documents",
    show_default=True,
    metavar="KEY|by-date|by-type|by-prefix",
    help="One partition, or one for each date of change, type of source, or first two digits of the family key.",
)
@click.option(
    "--base",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Name sources by their path below DIR.  [default: by the folder's name and the path below it]",
)
@click.option("--tenant", metavar="NAME", help="The owner of these documents; searches can be limited to a tenant.")
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Skip what matches, as in a .gitignore file; repeatable. Give it again in later runs.",
)
@click.option(
    "--include",
    multiple=True,
    metavar="PATTERN",
    help="Also read files that match, whatever their suffix: in the format that --as names, else by content or as "
    "text. Repeatable. Give it again in later runs, for new and renamed files.",
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="ROLE=NAME",
    help="For rows: the field with their text, html (a text in HTML), id, title or address. ROLE is one of these five "
    "words, as in text=body; a.b is field b inside a. Repeatable.",
)
@click.option(
    "--prune", is_flag=True, help="Remove the chunks of sources that no longer exist in these folders and files."
)
@click.option(
    "--allow-deletions",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Let --prune remove up to N sources of a folder or a file of records that is empty or gone, and let up to N "
    "sources lose most of their chunks. With --sync, the sync may also remove or shrink up to N sources.",
)
@click.option(
    "--chunking",
    type=click.Choice(list(POLICIES)),
    help="The chunking policy of these folders, also for later runs.  "
    f"[default: as before, {DEFAULT_POLICY.name} if new]",
)
@click.option("--checksum", is_flag=True, help="Compare every file by checksum, not by size and times.")
@click.option(
    "--follow-links",
    is_flag=True,
    help="Also follow links to files outside the folders. To follow a link to a folder, name it.",
)
@click.option("--sync", is_flag=True, help="Update the index afterwards, as `chunksink sync` does.")
@click.option("--jobs", type=click.IntRange(min=1), help="Number of processes.  [default: by size of the input]")
@index_options
@metrics_file_option
@json_option
def command(
    shared: SharedOptions,
    sources: tuple[Path, ...],
    sync: bool,
    jobs: int | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Make canonical chunks from documents. SOURCE is a file, or a folder with its subfolders.

    Formats: Markdown, text, HTML, PPTX and EPUB; PDF, DOCX and XLSX with the extras
    `pdf`, `docx` and `office`; and JSON records, recognised by their content: parsed documents, extractor records,
    terminal recordings, chunks of other programs, and rows that have a text and an id, a title or an address. A CSV
    file is read as rows if it is a SOURCE itself; in a folder it is skipped.

    A second run reads only what has changed. A source that fails keeps its last good chunks; the others are ingested,
    and the exit code is 3. Missing sources and records keep their chunks until --prune.

    The first ingest of a folder registers it: from then on its files are named by the folder's name and the path below
    it, even if a single file, a subfolder or a parent folder is ingested. Hidden files, chunk folders, installed
    packages (node_modules, Python environments) and caches (CACHEDIR.TAG) are skipped.

    \b
    Examples:
      chunksink ingest ~/notes
      chunksink ingest docs README.md --chunks /data/chunks --partition docs --sync
      chunksink ingest sessions --as recorder --partition by-date
      chunksink ingest chunks-of-langchain.jsonl elements-of-unstructured.json
      chunksink ingest articles.jsonl products.csv
      chunksink ingest posts.json --field html=content.rendered --field title=title.rendered
      chunksink ingest . --exclude drafts/ --exclude "*.min.html" --prune
      chunksink ingest ~/projects --include "*.py" --include "config/*.toml"
      chunksink ingest . --exclude "$(cat .gitignore)"
    """
    options["fields"] = _fields(options["fields"])
    Options(**options).check(all_formats())
    with open_index(shared, needs_index=sync) as index:
        with progress("ingest", None, "sources") as bar:
            report = index.ingest(*sources, jobs=jobs, on_source=lambda: bar.advance(1), **options)
        if not as_json:
            echo([_headline(report, index.config.bus.address), *_statistics(report), *map(Note, _problems(report))])
            if sync:
                note_index(index.config, "sync")
        synced = index.sync(allow_deletions=options["allow_deletions"]) if sync else None
    code = Exit.INVALID_INPUT if report.failures else Exit.OK
    if synced is None:
        if as_json:
            print_json(asdict(report))
        return code
    if as_json:
        print_json({"ingest": asdict(report), "sync": synced.as_json()})
    else:
        print_report(synced, as_json=False)
    return exit_code(synced) or code


def _fields(pairs: Sequence[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for role, _, name in (pair.partition("=") for pair in pairs):
        if fields.setdefault(role.strip(), name.strip()) != name.strip():
            raise Refusal(f"--field sets {role.strip()} twice; choose one field", Exit.USAGE)
    return fields


def _statistics(report: IngestReport) -> Iterator[str]:
    """What was read and what was not, even if nothing has changed."""
    if len(report.kinds) > 1:
        yield "read as " + ", ".join(f"{kind} {number:,}" for kind, number in report.kinds.items())
    if report.other_kinds:
        yield _skipped(report.other_kinds)
    yield from _left_out(report)


def _problems(report: IngestReport) -> Iterator[str]:
    if report.sources == 0:
        yield "found nothing to read"
    if report.unmatched:
        named = some([*map(printable, report.unmatched)], _SHOWN_NAMES)
        yield f"{named} matched nothing; patterns are relative to each named folder, and skip hidden files and folders"
    if report.elsewhere:
        others = some(report.elsewhere, _SHOWN_NAMES)
        remedy = f"to update them: --partition {report.elsewhere[0]}"
        yield f"these files also have chunks in {others}, which were not updated; {remedy}"
    if report.missing:
        named = some([printable(name) for name in report.missing_from], _SHOWN_NAMES, total=report.missing)
        missing = f"{counted(report.missing, 'source')} not found any more: {named}"
        yield f"{missing}. The chunks are kept; --prune removes them"
    for folder, number in report.gone.items():
        remedy = f"To remove its {counted(number, 'source')}: ingest it with --prune --allow-deletions {number}"
        yield f"{printable(folder)} does not exist any more; its chunks are kept. {remedy}"
    for failure in report.failures[:_SHOWN_FAILURES]:
        line = "" if failure.line is None else f":{failure.line}"
        yield f"{failure.code} {printable(failure.source_uri)}{line} {printable(failure.reason)}"
    for rest in more(report.failed, _SHOWN_FAILURES):
        yield f"and {rest}: see `chunksink runs {report.run_id}`"


def _headline(report: IngestReport, root: str) -> str:
    total = f"{counted(report.chunks, 'chunk')} of {counted(report.documents, 'source')}"
    numbers = {"new or changed": report.processed, "unchanged": report.unchanged, "without text": report.empty}
    files = counts(numbers, "file")
    pruned = f"{counted(report.pruned, 'source')} removed" if report.pruned else ""
    failed = counted(report.failed, "failure") if report.failed else ""
    changes = ", ".join(filter(None, (files, pruned, failed)))
    if not report.written:
        what = "nothing written" if report.failed else "nothing to do"
        return ", ".join(filter(None, (f"{what}: {root} has {total}", files, failed)))
    noun = "partition" if len(report.partitions) == 1 else "partitions"
    others = f", including {counted(report.carried_over, 'source')} not from these files" if report.carried_over else ""
    changed = f": {changes}" if changes else ""
    return f"wrote {noun} {some(report.partitions, _SHOWN_NAMES)} in {root}{changed}; now {total}{others}"


def _left_out(report: IngestReport) -> Iterator[str]:
    """A line for each code, without failures."""
    failed = Counter(
        (failure.code, where)
        for failure in report.failures
        for where in ("", failure.source_uri, folder_of(failure.source_uri))
    )
    for code, number in report.left_out.items():
        names = [printable(uri) for uri in report.left_out_from[code] if not failed[code, uri]]
        rest = ""
        if len(report.left_out_from[code]) > _SHOWN_NAMES:
            folders = report.left_out_folders[code].items()
            others = +Counter({where: count - failed[code, where] for where, count in folders})
            names = [f"{count:,} in {printable(where)}" for where, count in others.most_common()]
            rest = f"{', ...' if len(names) > _SHOWN_NAMES else ''}; chunksink ledger lists them"
        if names:
            label = "note" if code in ODD else "left out"
            remedy = f"; {MEANINGS[code][1]}" if code in WITH_REMEDY else ""
            total = number - failed[code, ""]
            yield f"{label}: {code} {total:,} ({', '.join(names[:_SHOWN_NAMES])}{rest}){remedy}"


def _skipped(kinds: Mapping[str, int]) -> str:
    """`skipped 14 files of other kinds (.log 9, .csv 3, no suffix 2); ...`, and how to read them."""
    shown = {suffix: number for suffix, number in islice(kinds.items(), _SHOWN_SUFFIXES) if suffix != OTHERS}
    rest = sum(kinds.values()) - sum(shown.values())
    listed = [f"{suffix} {number:,}" for suffix, number in shown.items()] + ([f"{OTHERS} {rest:,}"] if rest else [])
    texts, rows = (
        [one for one in shown if one.replace(NO_SUFFIX, "") in all_formats()[name].suffixes_if_asked]
        for name in ("text", "rows")
    )
    remedy = f"--as text ({', '.join(texts)}) or " if texts else ""
    if NOTEBOOK in shown:
        remedy = f"{TO_MARKDOWN} ({NOTEBOOK}) or {remedy}"
    included = f"{', '.join(rows)} as rows, and other plain text" if rows else "other plain text"
    return (
        f"skipped {counted(sum(kinds.values()), 'file')} of other kinds ({', '.join(listed)}); "
        f"to read them: {remedy}--include PATTERN ({included})"
    )
