"""`chunksink validate`: the smoke test of the chunk bus."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from chunksink.chunkbus.findings import MEANINGS, Finding, Severity
from chunksink.chunkbus.layout import BusRoot, check_partition_key
from chunksink.chunkbus.runlog import RunLog
from chunksink.cli_errors import Refusal
from chunksink.exits import Exit
from chunksink.options import chunks_option, config_from, home_option, json_option
from chunksink.output import counted, print_json, some
from chunksink.progress import progress
from chunksink.workers import worker_processes

if TYPE_CHECKING:
    from chunksink.chunkbus.validate import Summary

_SHOWN_PARTITIONS = 5


@click.command()
@chunks_option
@click.option("--partition", "partitions", multiple=True, metavar="KEY", help="Only this partition; may be repeated.")
@click.option(
    "--require-source-checksum/--no-require-source-checksum",
    default=None,
    help="Refuse chunks whose provenance has no source_checksum.  [default: no]",
)
@click.option("--chunking", is_flag=True, help="Also ask Markdown chunks the checklist of the chunking specification.")
@click.option(
    "--fields",
    is_flag=True,
    help="Also tell which fields of the index the chunks fill, which values no field can read, and what none looks at.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes to use.  [default: by size of the input]")
@home_option
@json_option
def command(
    chunks: str | None,
    partitions: tuple[str, ...],
    require_source_checksum: bool | None,
    chunking: bool,
    fields: bool,
    jobs: int | None,
    home: str | None,
    as_json: bool,
) -> int:
    """Check chunks and manifests against the contract, without any engine.

    Prints one line a finding: CODE partition:line detail. Nothing is changed. Exits with 0 only when clean, with 3
    otherwise; a warning counts here, though it does not stop a rebuild. Every finding also goes to the run record
    below HOME/runs. Partitions are judged one by one: where two contradict each other, as when two sources claim one
    chunk id, a sync says so.

    \b
    Examples:
      chunksink validate
      chunksink validate --chunks /data/chunks --partition 2026-01-31
      chunksink validate --fields
      chunksink validate --json | jq '.findings[].code'
    """
    from chunksink.chunkbus.validate import Validation
    from chunksink.survey import print_survey, survey_as_json, survey_partitions

    with ExitStack() as stack:
        config = config_from(chunks=chunks, home=home, require_source_checksum=require_source_checksum)
        root = BusRoot(config.chunks_path).require()
        keys = _chosen(root, partitions)
        total = sum(root.size_of(key) for key in keys)
        run_log = stack.enter_context(RunLog(config.home_path, "validate"))
        workers = stack.enter_context(worker_processes(total, jobs))
        bar = stack.enter_context(progress("validate", total, "B"))
        found: list[Finding] = []

        def take(finding: Finding) -> None:
            run_log.finding(finding)
            if as_json:
                found.append(finding)
            else:
                codes[finding.code] += 1
                bar.say(str(finding))

        codes: Counter[str] = Counter()
        summary = Validation(
            root,
            require_source_checksum=config.require_source_checksum,
            workers=workers,
            on_finding=take,
            on_progress=bar.advance,
        ).run(keys if partitions else None)
        if chunking and summary.ok:
            summary = replace(summary, errors=_check_chunking(root, keys, take))
        survey = survey_partitions(root, keys, summary.chunks) if fields and summary.ok else None
        run_log.finish("ok" if summary.clean else "invalid", **asdict(summary))
    if as_json:
        findings = [asdict(finding) for finding in found]
        document = {"ok": summary.clean, "partitions": summary.partitions, "chunks": summary.chunks}
        print_json(document | {"findings": findings} | (survey_as_json(survey) if survey else {}))
    else:
        _print_summary(summary, codes, root, str(run_log.path))
        if survey:
            print_survey(survey)
        elif fields:
            click.echo("The fields are counted once there is no error.", err=True)
    return Exit.OK if summary.clean else Exit.INVALID_INPUT


def _chosen(root: BusRoot, partitions: Sequence[str]) -> list[str]:
    """A name that nothing there has is one that was not meant: nothing is missing from the bus."""
    there = root.partition_keys()
    if absent := [key for key in map(check_partition_key, partitions) if key not in there]:
        named = some(there, _SHOWN_PARTITIONS) or "none"
        raise Refusal(f"no partition {', '.join(absent)} in {root.path}; there are {named}", Exit.USAGE)
    return list(partitions) or there


def _check_chunking(root: BusRoot, keys: list[str], take: Callable[[Finding], None]) -> int:
    """How many breaches there are; asked of valid partitions only."""
    from chunksink.ingest.checklist import find_breaches
    from chunksink.ingest.codes import CHUNKING_FAILED

    breaches = 0
    for key in keys:
        for breach in find_breaches(root, key):
            breaches += 1
            detail = f"{breach.source_uri}: {breach.reason}"
            take(Finding(CHUNKING_FAILED, Severity.ERROR, key, breach.line, detail))
    return breaches


def _print_summary(summary: "Summary", codes: Counter[str], root: BusRoot, record: str) -> None:
    folder = click.format_filename(root.path)
    seen = f"{counted(summary.partitions, 'partition')}, {counted(summary.chunks, 'chunk')} in {folder}"
    if summary.partitions == 0:
        seen += " (there is nothing here yet)"
    if not codes:
        click.echo(f"clean: {seen}")
        return
    click.echo(f"{counted(summary.errors, 'error')}, {counted(summary.warnings, 'warning')}: {seen}")
    click.echo("What to do:", err=True)
    for code in sorted(codes):
        remedy = MEANINGS[code][1] if code in MEANINGS else "ingest the source again"
        click.echo(f"  {code}: {remedy}", err=True)
    click.echo(f"All of it is in the run record {record}", err=True)
