"""`chunksink mcp`: the index as tools for programs that speak the Model Context Protocol."""

import logging
import os
import signal
from contextlib import closing

import click

from chunksink import __version__
from chunksink.command_line.exits import Exit
from chunksink.command_line.options import SharedOptions, access_of, config_from, index_options, require_extra
from chunksink.live import SEARCH_ERRORS, LiveSearch
from chunksink.sinks.custom_fields import FieldSet
from chunksink.wiring import default_mode


@click.command()
@click.option("--tenant", metavar="NAME", help="Serve only what belongs to this tenant.")
@index_options
def command(shared: SharedOptions, tenant: str | None) -> int:
    """Serve the index to an assistant over standard input and output (Model Context Protocol).

    It has three read-only tools: `search`, `get_chunk` for a passage with the passages around it, and `describe_index`
    for the fields and values to filter by. With --tenant, it serves only what belongs to that tenant. What other
    processes write appears without a restart. Needs the extra `mcp`.

    \b
    Examples:
      chunksink mcp --config /path/to/chunksink.toml
    In the configuration of an assistant (with absolute paths, as it runs in another folder):
      {"mcpServers": {"documents": {"command": "chunksink", "args": ["mcp", "--config", "/path/to/chunksink.toml"]}}}
    """
    require_extra("mcp", "mcp")
    from chunksink.search.mcp import mcp_server

    config = config_from(shared)
    access = access_of(config, tenant)
    logging.basicConfig(format="%(message)s")  # the library would add a handler that wraps lines at 80 columns
    # The library waits for the next line of standard input before it ends. The system frees our locks.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda caught, _frame: os._exit(128 + caught))
    with closing(LiveSearch(config, every_seconds=0.5)) as live:
        server = mcp_server(live, access, SEARCH_ERRORS, __version__, default_mode(config), FieldSet.of(config.fields))
        server.run("stdio")
    return Exit.OK
