"""`chunksink dead-letters`: documents that engines refused, and sending them again."""

from collections.abc import Iterator
from dataclasses import asdict, replace

import click

from chunksink.chunkbus.wording import counted, printable
from chunksink.command_line.exits import Exit
from chunksink.command_line.options import SharedOptions, config_from, home_option, json_option
from chunksink.command_line.output import Note, echo, show
from chunksink.rebuild.locks import writing
from chunksink.rebuild.receipts import DeadLetter, receipts_of_live
from chunksink.rebuild.state import State

_sink_option = click.option("--sink", metavar="NAME", help="Only documents that this sink refused.")


@click.group(invoke_without_command=True)
@_sink_option
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most this many per sink.")
@home_option
@json_option
@click.pass_context
def command(context: click.Context, shared: SharedOptions, sink: str | None, limit: int, as_json: bool) -> int:
    """List the documents of the live index that an engine refused, each with its source and the reason.

    A refused document blocks no other: only that sink leaves it out, and it is sent again when its source changes.
    Texts that an embedding endpoint refused are tried again by every sync. After a change in the engine, such as a
    raised limit, use `dead-letters retry`. Exits with 6 when there are any.

    \b
    Examples:
      chunksink dead-letters
      chunksink dead-letters --json | jq -r '.[].source' | sort -u
      chunksink dead-letters retry && chunksink sync
    """
    context.obj = sink, shared  # for `dead-letters --sink X --home DIR retry`
    if context.invoked_subcommand is not None:
        return Exit.OK
    with State.existing(config_from(shared, uses_sinks=False).home_path) as state:
        builds = receipts_of_live(state, sink)
        found = [(name, letter) for name, receipts in builds.items() for letter in receipts.dead_letters(limit)]
        total = sum(receipts.refused() for receipts in builds.values())
    show(as_json, [{"sink": name, **asdict(letter)} for name, letter in found], _lines(found))
    if total > len(found):
        echo([Note(f"{len(found):,} of {total:,}; --limit N shows more")])
    return Exit.REFUSED if found else Exit.OK


@command.command("retry")
@_sink_option
@home_option
@click.pass_context
def retry_command(context: click.Context, shared: SharedOptions, sink: str | None) -> None:
    """Mark refused documents, so that the next sync sends their sources again.

    Fix the reason first: a document that is refused again is listed again.

    \b
    Examples:
      chunksink dead-letters retry && chunksink sync
      chunksink dead-letters retry --sink meilisearch
    """
    sink_of_group, shared_of_group = context.obj
    given = {name: value for name, value in asdict(shared).items() if value is not None}
    shared = replace(shared_of_group, **given)
    config = config_from(shared, uses_sinks=False)
    with State.existing(config.home_path) as state, writing(config.home_path):
        builds = receipts_of_live(state, sink or sink_of_group)
        marked = {name: number for name, receipts in builds.items() if (number := receipts.retry_dead_letters())}
    echo(f"{name}: {counted(number, 'document')} will be sent again" for name, number in marked.items())
    sync = f"the next `chunksink sync{shared.arguments()}` sends them"
    echo([sync if marked else "nothing was refused, so nothing will be sent again"])


def _lines(letters: list[tuple[str, DeadLetter]]) -> Iterator[str]:
    for name, letter in letters:
        source = printable(letter.source or letter.family)
        yield f"{name}  {printable(letter.id)}  ({source}, {letter.at[:19]})"
        yield f"    {printable(letter.reason)}"
    if not letters:
        yield "no document was refused"
