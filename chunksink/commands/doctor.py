"""`chunksink doctor`: whether everything that a run needs is there."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial

import click

from chunksink.doctor import Check, check, engines, machine, records
from chunksink.exits import Exit
from chunksink.options import chunks_option, config_from, home_option, json_option, named_file
from chunksink.output import columns, print_json, printable, wrapped
from chunksink.settings.config import Config, ConfigError, config_file

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@chunks_option
@home_option
@json_option
def command(as_json: bool) -> int:
    """Check this machine, the configuration, the chunks, our own files, every engine, the model and the cache.

    One line each: ok, warn or fail, and below a problem its remedy. For an engine with vectors, 100 of its texts are
    asked for and the answers compared with the exact ones, which takes a while for a large index. Nothing is changed,
    no model is loaded and no key is shown. Exits with 5 when a check fails.

    \b
    Examples:
      chunksink doctor
      chunksink doctor --json | jq '.[] | select(.verdict != "ok")'
    """
    checks = []
    for each in examine(config_from, named_file()):
        checks.append(each)
        if as_json:
            continue
        remedy = f"\n{'':<31}{printable(each.remedy)}" if each.remedy and each.verdict != "ok" else ""
        lines = wrapped(f"{each.verdict:<5} {each.name:<24}  {printable(each.found)}{remedy}", columns())
        click.echo(click.style(lines[:5], fg=_COLOURS[each.verdict]) + lines[5:])
    if as_json:
        print_json([asdict(each) for each in checks])
    return Exit.ENGINE if any(each.verdict == "fail" for each in checks) else Exit.OK


def examine(load: Callable[[], Config], place: str | None = None) -> Iterator[Check]:
    """All checks, in the order in which a run needs what they examine; without a configuration only the first ones.

    `place` is where the configuration is, if one was named.
    """
    yield check("python", machine.python)
    yield check("sqlite", machine.sqlite)
    try:
        config = load()
    except ConfigError as error:
        yield Check("configuration", "fail", str(error), "correct it; `chunksink init` writes a commented example")
        return
    home = config.home_path
    yield check("configuration", partial(machine.configuration, config, config_file(place)))
    yield check("chunks", partial(records.chunks, config.chunks_path))
    yield check("home", partial(machine.home, home))
    yield check("disk", partial(machine.disk, home))
    yield check("ingest", partial(records.ingest, home))
    yield check("index", partial(records.index, home))
    live = records.live_builds(home)
    if live is not None:
        yield check("partitions", partial(records.partitions, config.chunks_path, home))
    yield check("locks", partial(machine.locks, home))
    for name in dict.fromkeys(config.sinks):
        yield from engines.sink(config, name, live)
    yield from engines.unused_options(config)
    if config.endpoint is None:
        yield check("model", partial(machine.model, config))
    else:
        yield check("endpoint", partial(machine.endpoint, config, config.endpoint))
    yield check("cache", partial(records.cache, config))
