"""`chunksink cache verify`: every row against its checksum."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from chunksink.exits import Exit
from chunksink.options import config_from, home_option, json_option
from chunksink.output import counted, print_json
from chunksink.progress import progress
from chunksink.wiring import existing_cache

if TYPE_CHECKING:
    from embeddings.maintenance import VerifyReport

_SHOWN = 20


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
    from embeddings.maintenance import verify

    # Of a damaged file nothing is certain, not even how many rows it has.
    with existing_cache(config_from(home=home), read_only=not repair) as cache, progress("verify", None, "rows") as bar:
        report = verify(cache, repair=repair, progress=bar.advance)
        salvaged = cache.salvaged
    if as_json:
        print_json({"sound": report.is_sound, **asdict(report), "salvaged": [asdict(each) for each in salvaged]})
    else:
        _print(report)
        for each in salvaged:
            click.echo(f"salvaged {counted(each.rows, 'row')}; the damaged file is kept as {each.kept}")
    return Exit.OK if report.is_sound or repair else Exit.DRIFT


def _print(report: "VerifyReport") -> None:
    if report.is_sound:
        click.echo(f"sound: {counted(report.rows, 'vector')}")
        return
    for line in report.damage:
        click.echo(f"file: {line}")
    for row in report.bad[:_SHOWN]:
        click.echo(f"{row.reason}: {row.ref}")
    if len(report.bad) > _SHOWN:
        click.echo(f"... and {len(report.bad) - _SHOWN:,} more")
    done = f"{report.dropped:,} dropped" if report.dropped else "drop them with --repair"
    click.echo(f"{counted(len(report.bad), 'bad row')} of {report.rows:,}; {done}")
