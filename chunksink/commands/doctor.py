"""`chunksink doctor`: whether everything that a run needs is there."""

from dataclasses import asdict

import click

from chunksink.doctor import examine
from chunksink.exits import Exit
from chunksink.options import chunks_option, config_from, home_option, json_option, named_file
from chunksink.output import print_json, printable

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@chunks_option
@home_option
@json_option
def command(as_json: bool) -> int:
    """Check this machine, the configuration, the chunks, our own files, every engine, the model and the cache.

    One line each: ok, warn or fail, and below a problem its remedy. Nothing is changed, no model is loaded and no key
    is shown. Exits with 5 when a check fails.

    \b
    Examples:
      chunksink doctor
      chunksink doctor --json | jq '.[] | select(.verdict != "ok")'
    """
    checks = []
    for check in examine(config_from, named_file()):
        checks.append(check)
        if as_json:
            continue
        click.secho(f"{check.verdict:<5}", fg=_COLOURS[check.verdict], nl=False)
        click.echo(f" {check.name:<24} {printable(check.found)}")
        if check.remedy and check.verdict != "ok":
            click.echo(f"{'':<31}{printable(check.remedy)}")
    if as_json:
        print_json([asdict(check) for check in checks])
    return Exit.ENGINE if any(check.verdict == "fail" for check in checks) else Exit.OK
