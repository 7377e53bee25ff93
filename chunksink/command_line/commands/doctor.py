"""`chunksink doctor`: checks everything that a run needs."""

from dataclasses import asdict
from functools import partial

import click

from chunksink.chunkbus.wording import printable
from chunksink.command_line.exits import Exit
from chunksink.command_line.options import SharedOptions, config_from, index_options, json_option
from chunksink.command_line.output import columns, print_json, wrapped
from chunksink.doctor import Check, examine

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@index_options
@json_option
def command(shared: SharedOptions, as_json: bool) -> int:
    """Check this machine, the configuration, the chunks, the home, every engine, the model and the cache.

    Prints one line for each check (ok, warn or fail), and remedies below problems. In each engine with vectors it
    measures recall (the share of the nearest documents that a search finds) with up to 100 cached texts. That takes a
    while in a large index. Nothing is changed, no model is loaded and no key is shown. Exits with 5 when a check fails.

    \b
    Examples:
      chunksink doctor
      chunksink doctor --json | jq '.[] | select(.verdict != "ok")'
    """
    checks: list[Check] = []
    for each in examine(partial(config_from, shared)):
        checks.append(each)
        if as_json:
            continue
        remedy = f"\n{'':<31}{printable(each.remedy)}" if each.remedy and each.verdict != "ok" else ""
        lines = wrapped(f"{each.verdict:<5} {each.name:<23}  {printable(each.found)}{remedy}", columns())
        click.echo(click.style(lines[:5], fg=_COLOURS[each.verdict]) + lines[5:])
    if as_json:
        print_json([asdict(each) for each in checks])
    return Exit.ENGINE if any(each.verdict == "fail" for each in checks) else Exit.OK
