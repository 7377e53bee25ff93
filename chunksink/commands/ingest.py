"""`chunksink ingest`: documents become canonical chunks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chunksink.cli_errors import Refusal
from chunksink.exits import Exit
from chunksink.options import config_from, home_option, json_option
from chunksink.output import counted, print_json, printable
from chunksink.progress import progress

if TYPE_CHECKING:
    from chunksink.producers.report import IngestReport
    from chunksink.settings.config import Config

_SHOWN_FAILURES = 20
_SHOWN_SUFFIXES = 12
_SHOWN_NAMES = 3
_OTHERS = "others"
_KINDS = ("auto", "markdown", "text", "html", "pdf", "docx", "parsed", "recorder", "ir", "chunks", "rows")


class _SourcePath(click.Path):
    """An empty name would be the current folder: most often a variable of a script that is not set. What cannot be read
    is told like what cannot be read in a folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("an empty name is no source; name a folder or a file, '.' is the current folder", param, ctx)
        return super().convert(value, param, ctx)


@click.command()
@click.argument(
    "sources", nargs=-1, required=True, type=_SourcePath(path_type=Path, readable=False), metavar="SOURCE..."
)
@click.option(
    "--as", "kind", type=click.Choice(_KINDS), default="auto", show_default=True, help="What the sources are."
)
@click.option("--to", "chunks", metavar="BUS_ROOT", help="The bus root to write to.  [default: chunks]")
@click.option(
    "--partition",
    "to",
    default="documents",
    show_default=True,
    metavar="KEY|by-date|by-type|by-prefix",
    help="One partition, or one for each date of change, type of source, or first two digits of the family key.",
)
@click.option(
    "--base",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Name sources by their path below this.  [default: as they were named before, else the folder's parent]",
)
@click.option("--tenant", metavar="NAME", help="Whose documents they are; searches can be bound to a tenant.")
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Pass over what fits, below each folder, as in a .gitignore file; repeatable.",
)
@click.option(
    "--include",
    multiple=True,
    metavar="PATTERN",
    help="Read what fits too, whatever its suffix: as text, unless --as says otherwise; repeatable.",
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="ROLE=NAME",
    help="The sources are rows whose text, id, title or address stands in this field (or a.b, within it); repeatable.",
)
@click.option("--prune", is_flag=True, help="Withdraw what came from these folders and is not there any more.")
@click.option(
    "--allow-deletions",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Let --prune withdraw up to N sources though a folder holds none any more, and --sync remove as many.",
)
@click.option("--checksum", "every_file", is_flag=True, help="Read every file, whatever size and times say.")
@click.option("--sync", is_flag=True, help="Bring the engines up to date afterwards, as `chunksink sync` does.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes to use.  [default: by size of the input]")
@home_option
@json_option
def command(
    sources: tuple[Path, ...],
    chunks: str | None,
    sync: bool,
    jobs: int | None,
    home: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Make canonical chunks from documents: SOURCE is a folder (all that can be read below it) or a file.

    Markdown, HTML, text, reStructuredText, AsciiDoc and Org are read, PDF and DOCX with an extra
    (pip install 'chunksink[pdf,docx]'), and files of JSON records by what stands in them: chunks, parsed documents,
    logs, or rows, one document each, that have a text beside an id, a title or an address (--field names others), also
    in a CSV file that is named.

    Sources that did not change are left as they are, a source that fails keeps its last good chunks, and what the
    partition held from other sources stays. A second run does nothing and says so. Exits with 3 when a source or a
    record failed; the others are in. What a source does not say any more goes. Sources that vanished, and
    records that vanished from a file, keep their chunks, unless --prune is given; what --exclude passes over counts
    as vanished. Hidden files, a bus of chunks that lies among the sources, and folders of installed packages
    (node_modules, environments of Python) or of a cache (CACHEDIR.TAG) are passed over. A source is called by the
    folder that was named and its path below it, a file by the folder that it lies in. What lies in a folder that was
    read before keeps the names that it got there: after an edit, one file can be ingested alone.

    \b
    Examples:
      chunksink ingest ~/notes
      chunksink ingest docs README.md --to /data/chunks --partition docs --sync
      chunksink ingest sessions --as recorder --partition by-date
      chunksink ingest chunks-of-langchain.jsonl elements-of-unstructured.json
      chunksink ingest articles.jsonl products.csv
      chunksink ingest posts.json --field text=content.rendered --field title=title.rendered
      chunksink ingest . --exclude drafts/ --exclude "*.min.html" --prune
      chunksink ingest ~/projects --include "*.py" --include "config/*.toml"
    """
    from chunksink.ingesting import ingest
    from chunksink.producers.ingest import Options

    options["fields"] = _fields(options["fields"])
    _check(options)
    config = config_from(chunks=chunks, home=home)
    wanted = Options(**options)
    with progress("ingest", None, "sources") as bar:
        report = ingest(config, sources, wanted, jobs=jobs, on_source=lambda: bar.advance(1))
    code = Exit.INVALID_INPUT if report.failures else Exit.OK
    if not as_json:
        _print(report, config.chunks_path, can_prune=all(Path(source).is_dir() for source in sources))
    elif not sync:
        print_json(asdict(report))
    if not sync:
        return code
    return _sync(config, report, wanted.allow_deletions, as_json) or code


def _fields(given: Sequence[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for role, _, name in (field.partition("=") for field in given):
        if fields.setdefault(role.strip(), name.strip()) != name.strip():
            raise Refusal(f"--field names {role.strip()} twice; one field can be it", Exit.USAGE)
    return fields


def _check(options: dict[str, Any]) -> None:
    """What is wrong with the command itself is told as that."""
    from chunksink.producers.errors import IngestRefused
    from chunksink.producers.ingest import refuse_fields, refuse_tenant
    from chunksink.producers.patterns import Patterns

    try:
        refuse_tenant(options["tenant"])
        refuse_fields(options["kind"], options["fields"])
        Patterns(options["exclude"])
        Patterns(options["include"], "--include")
    except IngestRefused as refused:
        raise Refusal(str(refused), Exit.USAGE) from refused


def _sync(config: "Config", report: "IngestReport", allow_deletions: int, as_json: bool) -> Exit:
    from chunksink.index import Index
    from chunksink.summary import exit_code, print_report, tell_fault

    with Index(config, stage=progress, on_fault=tell_fault) as index:
        synced = index.sync(allow_deletions=allow_deletions)
    if as_json:
        print_json({"ingest": asdict(report), "sync": synced.as_json()})
    else:
        print_report(synced, as_json=False, why_these_sinks=config.why_these_sinks)
    return exit_code(synced)


def _print(report: "IngestReport", root: Path, *, can_prune: bool) -> None:
    held = f"{counted(report.chunks, 'chunk')} of {counted(report.documents, 'source')}"
    failed = f", {counted(report.failed, 'failure')}" if report.failed else ""
    if not report.written:
        what = "nothing written" if report.failed else "nothing to do"
        click.echo(f"{what}: {root} holds {held}, {counted(report.unchanged, 'file')} unchanged{failed}")
    else:
        names = ", ".join(report.partitions[:3]) + (" and others" if len(report.partitions) > 3 else "")
        elsewhere = report.carried_over - sum(report.of_others.values())
        others = f", {elsewhere:,} of them not from these files" if elsewhere > 0 else ""
        click.echo(
            f"wrote {counted(len(report.partitions), 'partition')} of {root} ({names}): "
            f"{counted(report.processed, 'file')} new or changed, {report.unchanged:,} unchanged"
            + (f", {counted(report.pruned, 'source')} withdrawn" if report.pruned else "")
            + f"{failed}; now {held}{others}"
        )
    if report.sources == 0:
        click.echo("nothing that can be read was found there", err=True)
    if len(report.kinds) > 1:
        click.echo("read as " + ", ".join(f"{kind} {number:,}" for kind, number in report.kinds.items()), err=True)
    if report.other_kinds:
        click.echo(_passed_over(report.other_kinds), err=True)
    if report.missing:
        click.echo(_not_found(report), err=True)
    if report.of_gone:
        click.echo(_of_gone(report.of_gone), err=True)
    if report.of_others:
        click.echo(_of_others(report.of_others, can_prune), err=True)
    _tell_left_out(report)
    shown = report.failures[:_SHOWN_FAILURES]
    for failure in shown:
        line = "" if failure.line is None else f":{failure.line}"
        click.echo(f"{failure.code} {printable(failure.source_uri)}{line} {printable(failure.reason)}", err=True)
    if report.failed > len(shown):
        click.echo(
            f"and {report.failed - len(shown):,} more; see chunksink ledger --status failed, chunksink runs", err=True
        )


def _tell_left_out(report: "IngestReport") -> None:
    """But failures that are told one by one."""
    from chunksink.producers.errors import FENCE_UNCLOSED, MEANINGS, ODD, SCAN_WITHOUT_TEXT, SOURCE_IN_ANOTHER_FILE

    # Of the others that are no failures little is lost.
    needs_work = (FENCE_UNCLOSED, SCAN_WITHOUT_TEXT, SOURCE_IN_ANOTHER_FILE)
    told = Counter(failure.code for failure in report.failures[:_SHOWN_FAILURES])
    for code, number in report.left_out.items():
        if number <= told[code]:
            continue
        how = "odd" if code in ODD else "left out"
        names = [printable(named.source_uri) for named in report.left_out_from if named.code == code]
        more = [f"...; chunksink ledger --json says of each source what was {how}"] * (len(names) > _SHOWN_NAMES)
        remedy = f"; {MEANINGS[code][1]}" if code in needs_work else ""
        click.echo(f"{how}: {code} {number:,} ({', '.join(names[:_SHOWN_NAMES] + more)}){remedy}", err=True)


def _not_found(report: "IngestReport") -> str:
    named = ", ".join(map(printable, report.missing_from[:_SHOWN_NAMES]))
    more = ", ..." if report.missing > _SHOWN_NAMES else ""
    was, keep, them = ("was", "keeps its", "it") if report.missing == 1 else ("were", "keep their", "them")
    return (
        f"{counted(report.missing, 'source')} {was} not found there any more and {keep} chunks; "
        f"--prune withdraws {them}: {named}{more}"
    )


def _of_gone(folders: Mapping[str, int]) -> str:
    number = sum(folders.values())
    named = ", ".join(map(printable, islice(folders, _SHOWN_NAMES))) + (", ..." if len(folders) > _SHOWN_NAMES else "")
    was, keep, them = ("was", "keeps its", "it") if number == 1 else ("were", "keep their", "them")
    where, each, allowed = ("which is", "that", number) if len(folders) == 1 else ("which are", "each such", "NUMBER")
    return (
        f"{counted(number, 'source')} {was} read from {named}, {where} not there any more, and {keep} chunks; an "
        f"ingest of {each} folder with --prune --allow-deletions {allowed} withdraws {them}"
    )


def _of_others(tenants: Mapping[str, int], can_prune: bool) -> str:
    from chunksink.producers.markdown.records import DEFAULT_TENANT

    number = sum(tenants.values())
    first, *more = tenants
    if more:
        some = ", ".join(f"{name} {tenants[name]:,}" for name in islice(tenants, _SHOWN_NAMES))
        whose = f"other tenants ({printable(some)}{', ...' if len(tenants) > _SHOWN_NAMES else ''})"
        how, allowed = "for the same tenant", "NUMBER"
    else:
        is_none = first == DEFAULT_TENANT
        whose, how = ("no tenant", "without --tenant") if is_none else (f"tenant {first}", f"with --tenant {first}")
        allowed = str(number)
    was, stay, them = ("was", "stays as it is", "it") if number == 1 else ("were", "stay as they are", "them")
    prune = f", and with --exclude '*' --prune --allow-deletions {allowed} it withdraws {them}" if can_prune else ""
    return (
        f"{counted(number, 'source')} {was} read from there for {printable(whose)} and {stay}: only an ingest "
        f"{printable(how)} reads {them} again{prune}"
    )


def _passed_over(kinds: Mapping[str, int]) -> str:
    """`passed over: 14 files of other kinds (.log 9, .csv 3, no suffix 2); ...`, and how they would be read."""
    from chunksink.producers.kinds import KINDS
    from chunksink.producers.tally import NO_SUFFIX

    told = [(suffix, number) for suffix, number in kinds.items() if suffix != _OTHERS][:_SHOWN_SUFFIXES]
    others = sum(kinds.values()) - sum(number for _, number in told)
    shown = [f"{suffix} {number:,}" for suffix, number in told] + ([f"{_OTHERS} {others:,}"] if others else [])
    texts = [suffix for suffix, _ in told if suffix.replace(NO_SUFFIX, "") in KINDS["text"].if_asked]
    remedy = f"--as text reads {', '.join(texts)} here too; " if texts else ""
    return (
        f"passed over: {counted(sum(kinds.values()), 'file')} of other kinds ({', '.join(shown)}); "
        f"{remedy}--include PATTERN any file of text"
    )
