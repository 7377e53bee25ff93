"""Every command of the command line."""

from collections.abc import Iterator

import click

from chunksink.command_line.cli import cli


def commands(group: click.Group = cli, *before: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that is not a group, with its full name."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)
        else:
            yield " ".join((*before, name)), command
