"""`chunksink cache verify`: every row against its checksum."""

from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from chunksink.exits import Exit
from chunksink.home_cache import existing_cache
from chunksink.options import config_from, home_option, json_option
from chunksink.output import counted, print_json
from chunksink.progress import progress

if TYPE_CHECKING:
    from chunksink.embeddings.maintenance import VerifyReport


@click.command("verify")
@click.option("--repair", is_flag=True, help="Drop bad rows, and salvage the sound ones out of a damaged file.")
@home_option
@json_option
def verify_command(repair: bool, home: str | None, as_json: bool) -> int:
    """Check every vector in the cache against its checksum, and the file itself.

    A bad row does no harm: it is never served, and computed again when its text is needed. Exits with 4 when
    something is wrong and was not repaired. With --repair a damaged file is kept under another name.

    \b
    Examples:
      chunksink cache verify
      chunksink cache verify --repair
    """
    from chunksink.embeddings.maintenance import verify
    from chunksink.rebuild.locks import writing

    # Of a damaged file nothing is certain, not even how many rows it has.
    config = config_from(home=home)
    with ExitStack() as stack:
        cache = stack.enter_context(existing_cache(config, read_only=not repair, salvage=repair))
        if repair:  # it drops rows
            stack.enter_context(writing(config.home_path))
        bar = stack.enter_context(progress("verify", None, "rows"))
        report = verify(cache, repair=repair, progress=bar.advance)
        salvaged = cache.salvaged
    if as_json:
        print_json({"sound": report.is_sound, **asdict(report), "salvaged": [asdict(each) for each in salvaged]})
    else:
        _print(report, repaired=repair)
        for each in salvaged:
            click.echo(f"salvaged {counted(each.rows, 'row')}; the damaged file is kept as {each.kept}")
    return Exit.OK if report.is_sound or repair else Exit.DRIFT


def _print(report: "VerifyReport", *, repaired: bool) -> None:
    if report.is_sound:
        click.echo(f"sound: {counted(report.rows, 'vector')}")
        return
    for line in report.damage:
        click.echo(f"file: {line}")
    for row in report.bad:
        click.echo(f"{row.reason}: {row.ref}")
    if report.bad_rows > len(report.bad):
        click.echo(f"... and {report.bad_rows - len(report.bad):,} more")
    if report.dropped:
        click.echo(f"{counted(report.dropped, 'bad row')} of {report.rows:,} dropped")
    elif not repaired:
        click.echo(f"{counted(report.bad_rows, 'bad row')} of {report.rows:,}; --repair mends it")
