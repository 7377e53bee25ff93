"""Signs of life for systemd, from a service with `Type=notify`."""

import os
import socket
from contextlib import suppress

STARTED = "READY=1"
ALIVE = "WATCHDOG=1"


def notify(state: str) -> None:
    """Send a state to systemd. Does nothing outside a service."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        sender.sendall(state.encode())
