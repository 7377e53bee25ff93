"""`chunksink validate`: checks chunks and manifests against the contract."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import click

from chunksink.chunkbus.findings import MEANINGS, Finding, Severity
from chunksink.chunkbus.layout import BusRoot, check_partition_key
from chunksink.chunkbus.reader import read_partition
from chunksink.chunkbus.runlog import RunLog
from chunksink.chunkbus.validation import Summary, Validation
from chunksink.chunkbus.wording import counted, printable, some
from chunksink.command_line.exits import Exit, Refusal
from chunksink.command_line.options import SharedOptions, config_from, index_options, json_option
from chunksink.command_line.output import Note, show
from chunksink.command_line.progress import progress
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.survey import FIELDS, Survey
from chunksink.workers import worker_processes

_SHOWN_FINDINGS = 5
_SHOWN_PARTITIONS = 5
_SHOWN_VALUE = 60
_SHOWN_PATHS = 40
_SHOWN_PROPOSALS = 20


@click.command()
@click.option("--partition", "partitions", multiple=True, metavar="KEY", help="Only this partition; may be repeated.")
@click.option(
    "--require-source-checksum/--no-require-source-checksum",
    default=None,
    help="Refuse chunks whose provenance has no source_checksum.  [default: no]",
)
@click.option(
    "--chunking",
    is_flag=True,
    help="Also check the sizes, ids and order of Markdown chunks that `chunksink ingest` made.",
)
@click.option(
    "--fields",
    is_flag=True,
    help="Also report which fields of the index the chunks fill, and which parts of the chunks no field reads.",
)
@click.option("--all", "show_all", is_flag=True, help="Print every finding as it is found, not five for each code.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes to use.  [default: by size of the input]")
@index_options
@json_option
def command(
    shared: SharedOptions,
    partitions: tuple[str, ...],
    require_source_checksum: bool | None,
    chunking: bool,
    fields: bool,
    show_all: bool,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Check chunks and manifests against the contract, without any engine.

    Prints the number of findings of each code and the first five of them; --all prints one line for each finding:
    CODE partition:line detail. Nothing is changed. Exits with 3 if there is any finding. A warning does not stop a
    rebuild. `chunksink runs ID` shows every finding. A sync also finds contradictions between partitions;
    `chunksink status` names them.

    \b
    Examples:
      chunksink validate
      chunksink validate --chunks /data/chunks --partition 2026-01-31
      chunksink validate --all
      chunksink validate --fields
      chunksink validate --json | jq '.findings[].code'
    """
    config = config_from(shared, uses_sinks=False, require_source_checksum=require_source_checksum)
    root, custom = config.bus.require(), FieldSet.of(config.fields)
    keys = _chosen(root, partitions)
    total = sum(root.size_of(key) for key in keys)
    found: list[Finding] = []
    shown: dict[str, list[Finding]] = {}
    codes: Counter[str] = Counter()
    with (
        RunLog(config.home_path, "validate") as run_log,
        worker_processes(total, jobs) as workers,
        progress("validate", total, "B") as bar,
    ):

        def report(finding: Finding) -> None:
            run_log.finding(finding)
            codes[finding.code] += 1
            if as_json:
                found.append(finding)
            elif show_all:
                bar.print_line(str(finding))
            elif codes[finding.code] <= _SHOWN_FINDINGS:
                shown.setdefault(finding.code, []).append(finding)

        summary = Validation(
            root,
            rules=custom.rules(require_source_checksum=config.require_source_checksum),
            workers=workers,
            on_finding=report,
            on_progress=bar.advance,
        ).run(keys if partitions else None)
        checks_chunking = chunking and summary.ok
        if checks_chunking:
            summary = replace(summary, errors=_check_chunking(root, keys, report))
        survey = _survey(root, keys, custom, summary.chunks) if fields and summary.ok else None
        run_log.finish("ok" if summary.clean else "invalid", **asdict(summary))
    document: dict[str, Any] = {"ok": summary.clean, "partitions": summary.partitions, "chunks": summary.chunks}
    document["findings"] = [asdict(finding) for finding in found]
    lines = [*_groups(shown, codes), *_summary_lines(summary, codes, root, str(run_log.path))]
    if chunking and not checks_chunking:
        lines.append(Note("The chunking was not checked, because there are errors."))
    if survey:
        document |= _survey_document(survey)
        lines += _survey_lines(survey)
    elif fields:
        lines.append(Note("The fields were not counted, because there are errors."))
    show(as_json, document, lines)
    return Exit.OK if summary.clean else Exit.INVALID_INPUT


def _chosen(root: BusRoot, partitions: Sequence[str]) -> list[str]:
    known = root.partition_keys()
    if absent := [key for key in map(check_partition_key, partitions) if key not in known]:
        named = some(known, _SHOWN_PARTITIONS) or "none"
        raise Refusal(f"no partition {', '.join(absent)} in {root.address}; there are {named}", Exit.USAGE)
    return list(partitions) or known


def _check_chunking(root: BusRoot, keys: list[str], report: Callable[[Finding], None]) -> int:
    """Reports breaches of the chunking rules, and returns their number. All partitions must be valid."""
    from chunksink.ingest.checklist import find_breaches
    from chunksink.ingest.codes import CHUNKING_FAILED

    breaches = [(key, breach) for key in keys for breach in find_breaches(root, key)]
    for key, breach in breaches:
        report(Finding(CHUNKING_FAILED, Severity.ERROR, key, breach.line, f"{breach.source_uri}: {breach.reason}"))
    return len(breaches)


def _groups(shown: dict[str, list[Finding]], codes: Counter[str]) -> Iterator[str]:
    """For each code, the number of all its findings, then the first ones."""
    for code, findings in shown.items():
        yield f"{code}: {counted(codes[code], 'finding')}"
        yield from (f"  {finding.reason}" for finding in findings)
        if hidden := codes[code] - len(findings):
            yield Note(f"  ... and {hidden:,} more; --all prints all")


def _summary_lines(summary: Summary, codes: Counter[str], root: BusRoot, record: str) -> Iterator[str]:
    folder = click.format_filename(root.address)
    seen = f"{counted(summary.partitions, 'partition')}, {counted(summary.chunks, 'chunk')} in {folder}"
    if summary.partitions == 0:
        seen += " (there is nothing here yet)"
    if not codes:
        yield f"clean: {seen}"
        return
    yield f"{counted(summary.errors, 'error')}, {counted(summary.warnings, 'warning')}: {seen}"
    yield Note("What to do:")
    for code in sorted(codes):
        yield Note(f"  {code}: {MEANINGS[code][1] if code in MEANINGS else 'ingest the source again'}")
    yield Note(f"All findings are in the run record {record}")


def _survey(root: BusRoot, keys: list[str], fields: FieldSet, chunks: int) -> Survey:
    """Which fields of the index these valid partitions fill."""
    survey = Survey(fields)
    with progress("fields", chunks, "chunks") as bar:
        for key in keys:
            for line, (_, record) in enumerate(read_partition(root, key), start=1):
                survey.take(record, key, line)
                bar.advance(1)
    return survey


def _survey_document(survey: Survey) -> dict[str, Any]:
    fields = {}
    for name in FIELDS:
        first = survey.first_unread.get(name)
        fields[name] = {
            "filled": survey.filled[name],
            "unread": survey.unread[name],
            "first_unread": asdict(first) if first else None,
        }
    return {"fields": fields, "unmapped": dict(survey.unmapped.most_common()), "proposals": survey.proposals()}


def _survey_lines(survey: Survey) -> Iterator[str]:
    yield f"Fields of the index, and how many of {counted(survey.chunks, 'chunk')} fill them:"
    for name in FIELDS:
        if survey.filled[name] or survey.unread[name]:
            yield f"  {name:{max(map(len, FIELDS))}}  {survey.filled[name]:>11,}{_unread(survey, name)}"
    if empty := [name for name in FIELDS if not survey.filled[name] and not survey.unread[name]]:
        yield f"Fields that no chunk fills: {', '.join(empty)}."
    if survey.unmapped:
        paths = [f"{printable(path)} ({number:,})" for path, number in survey.unmapped.most_common()]
        yield f"Values that no field reads: {some(paths, _SHOWN_PATHS)}."
    if survey.unread or survey.unmapped:
        yield Note("docs/contract.md lists which paths and values each field reads.")
    if proposals := survey.proposals():
        yield "To filter by such values, add these tables to chunksink.toml, then run `chunksink sync`."
        yield "With `search = true` in a table, searches also find the words in its field."
        for table in proposals[:_SHOWN_PROPOSALS]:
            yield from ("", *(printable(line) for line in table))


def _unread(survey: Survey, name: str) -> str:
    first = survey.first_unread.get(name)
    if first is None:
        return ""
    value = json.dumps(first.value, ensure_ascii=False)
    example = printable(value if len(value) <= _SHOWN_VALUE else value[:_SHOWN_VALUE] + "...")
    return f"  {survey.unread[name]:,} not read: {first.path} is {example} in {first.partition}:{first.line}"
