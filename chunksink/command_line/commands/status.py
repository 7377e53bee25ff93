"""`chunksink status`: what is live, held, due or under way, without calling an engine."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import inf
from shutil import disk_usage
from typing import Any, Literal

import click

from chunksink.chunkbus.wording import counted
from chunksink.command_line.exits import errors_as_refusals
from chunksink.command_line.options import SharedOptions, config_from, index_options, json_option
from chunksink.command_line.output import show
from chunksink.command_line.status_report import SHOWN, status_lines
from chunksink.rebuild.errors import NoGeneration
from chunksink.rebuild.freshness import Freshness, failed_run, freshness
from chunksink.rebuild.run_records import RunRecord, newest_run
from chunksink.rebuild.state import FULL_BYTES
from chunksink.rebuild.status import HomeStatus, failures_of
from chunksink.wiring import status_of

_Level = Literal["OK", "WARNING", "CRITICAL", "UNKNOWN"]
_CODES: dict[_Level, int] = {"OK": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}
_WORST: tuple[_Level, ...] = ("CRITICAL", "UNKNOWN", "WARNING", "OK")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@click.command()
@index_options
@click.option("--all", "everything", is_flag=True, help="Name every held source, partition and finding.")
@click.option("--check", is_flag=True, help="Print one line, and exit as a monitoring plugin does.")
@click.option("--max-lag", metavar="AGE", help="With --check: WARNING if a change waits longer than AGE.")
@click.option(
    "--max-sync-age", metavar="AGE", help="With --check: WARNING if the last complete sync is older than AGE."
)
@click.option("--max-proof-age", metavar="AGE", help="With --check: WARNING if the last verify is older than AGE.")
@click.option("--ingest-only", is_flag=True, help="With --check: without an index, only the last ingest counts.")
@json_option
def command(
    shared: SharedOptions, everything: bool, check: bool, ingest_only: bool, as_json: bool, **limits: str | None
) -> int:
    """Show the live index, which sources are held and why, and whether a sync or a rebuild is due or running.

    All of it comes from chunksink's records and the list of partitions. No engine is asked; `chunksink verify` reads
    the engines. Changes in your documents are noticed only after `chunksink ingest`.

    With --check, the exit codes are those of monitoring plugins. 0 OK. 1 WARNING: partitions are missing or invalid,
    sources are held, a restored backup was not compared, or one of the options --max-... is exceeded. 2 CRITICAL: there
    is no index, the disk is full, the last run failed, or verify found differences that were not repaired. 3 UNKNOWN:
    the home or the chunks cannot be read. AGE is a number and s, m, h or d, such as 15m. With --ingest-only, for a
    machine that only ingests, a missing index is no problem, but a missing record of an ingest is CRITICAL.

    \b
    Examples:
      chunksink status
      chunksink status --check --max-lag 15m --max-sync-age 1h --max-proof-age 8d
      chunksink status --json | jq '.sinks.fts.to_write'
      chunksink status --json | jq -e '.current and .rebuild_due == null' && echo "nothing to do"
    """
    if check:
        return _check(shared, limits, ingest_only=ingest_only, as_json=as_json)
    if ingest_only or any(limits.values()):
        raise click.UsageError("--max-lag, --max-sync-age, --max-proof-age and --ingest-only need --check")
    config = config_from(shared)
    status = status_of(config, -1 if as_json or everything else SHOWN)
    lines = status_lines(status, config.home_path, None if everything else SHOWN)
    show(as_json, {"current": status.is_current, **asdict(status)}, lines)
    return 0


@dataclass(frozen=True)
class _Problem:
    level: _Level
    code: str
    message: str


def _check(shared: SharedOptions, ages: Mapping[str, str | None], *, ingest_only: bool, as_json: bool) -> int:
    """`ages` are the limits as they were written, by option."""
    problems: list[_Problem] = []
    no_problem, figures, facts = "no problem", "", dict[str, Any]()
    try:
        with errors_as_refusals():
            limits = {option: _seconds(age) for option, age in ages.items() if age is not None}
            if ingest_only and limits:
                raise click.UsageError("--ingest-only checks the last ingest only: leave out --max-...")
            config = config_from(shared)
            if config.home_path.exists() and disk_usage(config.home_path).free < FULL_BYTES:
                full = f"the disk of {config.home} is full, so runs fail and leave no record: make room"
                problems.append(_Problem("CRITICAL", "disk_full", full))
            try:
                status = status_of(config, named=0)
            except NoGeneration:
                if not ingest_only:
                    problems.append(_Problem("CRITICAL", "no_index", "there is no index to search"))
                else:
                    no_problem = "no problem; there is no index, so only the last ingest was checked"
                    failed, ingested = failed_run(config.home_path), newest_run(config.home_path, "ingest")
                    problems += _failed(failed)
                    if failed is None and ingested is None:
                        no_ingest = f"there is no record of a finished ingest in {config.home}"
                        problems.append(_Problem("CRITICAL", "no_ingest", no_ingest))
                    counts = {"ingest_failures": failures_of(ingested)}
                    figures, facts = f" | {_numbers(counts)}", {"failed_run": failed and asdict(failed)} | counts
            else:
                fresh = freshness(status, config.home_path, config.bus)
                problems += _problems(status, fresh, limits)
                counts = _counts(status)
                figures, facts = f" | {_figures(counts, fresh, limits)}", asdict(fresh) | counts
    except click.ClickException as error:
        problems.append(_Problem("UNKNOWN", "not_readable", error.format_message()))
    level = next(level for level in _WORST if level == "OK" or any(each.level == level for each in problems))
    found = "; ".join(each.message for each in problems) or no_problem
    line = " ".join(f"CHUNKSINK {level}: {found}".replace("|", "/").split())
    document = {"state": level, "exit_code": _CODES[level], "problems": [asdict(each) for each in problems], **facts}
    show(as_json, document, [line + figures])
    return _CODES[level]


def _seconds(age: str) -> int:
    written = re.fullmatch(r"([0-9]{1,9})([smhd])", age)
    if written is None:
        raise click.UsageError(f"the age {age!r:.30} is invalid: write it like 90s, 15m, 24h or 7d")
    return int(written[1]) * _SECONDS[written[2]]


def _problems(status: HomeStatus, fresh: Freshness, limits: Mapping[str, int]) -> Iterator[_Problem]:
    """`limits` are in seconds."""
    yield from _failed(fresh.failed_run)
    if fresh.has_drift:
        found = "verify found differences that were not repaired: `chunksink verify --repair`"
        yield _Problem("CRITICAL", "drift", found)
    if fresh.lag is None:
        yield _Problem("UNKNOWN", "no_chunks", f"there are no chunks at {status.bus.path}")
    elif fresh.lag > limits.get("max_lag", inf) and not status.bus.broken:
        yield _Problem("WARNING", "lag", f"a change has waited for {_age(fresh.lag)}: `chunksink sync`")
    if status.bus.broken or status.held:
        yield _Problem("WARNING", "held", _held(status))
    if status.is_restored:
        yield _Problem("WARNING", "restored", "restored from a backup, and not compared since: `chunksink sync`")
    if (inf if fresh.updated is None else fresh.updated) > limits.get("max_sync_age", inf):
        last = "there is no record of a complete sync"
        if fresh.updated is not None:
            last = f"the last complete sync was {_age(fresh.updated)} ago"
        yield _Problem("WARNING", "sync_age", f"{last}: is it scheduled?")
    if fresh.verified is None and "max_proof_age" in limits:
        yield _Problem("WARNING", "not_verified", "the live index was not verified: `chunksink verify`")
    elif fresh.verified is not None and fresh.verified > limits.get("max_proof_age", inf):
        yield _Problem("WARNING", "proof_age", f"the last verify was {_age(fresh.verified)} ago: `chunksink verify`")


def _failed(run: RunRecord | None) -> Iterator[_Problem]:
    if run is not None:
        why = f" ({run.error})" if run.error else ""
        yield _Problem("CRITICAL", "run_failed", f"the last {run.command} failed{why}: `chunksink runs {run.id}`")


def _held(status: HomeStatus) -> str:
    if not status.bus.broken:
        return f"{counted(status.held, 'source')} held: `chunksink status` names them"
    first, others = status.bus.broken[0], len(status.bus.broken) - 1
    what = f"partition {first.key} is {first.state}" + (f", and {counted(others, 'other')}" if others else "")
    return f"{what}; {counted(status.held, 'source')} held: `chunksink validate`"


def _counts(status: HomeStatus) -> dict[str, int]:
    return {
        "sources": status.bus.families,
        "chunks": status.bus.chunks,
        "ingest_failures": status.ingest_failures,
        "held": status.held,
        "refused": max((sink.refused for sink in status.sinks.values()), default=0),
    }


def _figures(counts: Mapping[str, int], fresh: Freshness, limits: Mapping[str, int]) -> str:
    """Performance data: value and unit, and the limit of a warning."""
    ages = (
        ("lag", fresh.lag, "max_lag"),
        ("proof_age", fresh.verified, "max_proof_age"),
        ("updated", fresh.updated, "max_sync_age"),
    )
    with_age = [f"{name}={age:.0f}s;{limits.get(option, '')};;0" for name, age, option in ages if age is not None]
    return " ".join([*with_age, _numbers(counts)])


def _numbers(counts: Mapping[str, int]) -> str:
    return " ".join(f"{name}={number};;;0" for name, number in counts.items())


def _age(seconds: float) -> str:
    unit = next((unit for unit in ("d", "h", "m") if seconds >= 2 * _SECONDS[unit]), "s")
    return f"{seconds / _SECONDS[unit]:.0f} {'min' if unit == 'm' else unit}"
