"""The HTTP protocol of the server, with limits for clients that connect and send nothing."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_HEADER_SECONDS = 10.0
"""Time limit for the headers of a request."""
_MAX_PER_ADDRESS = 250
"""Connections of one address; all clients behind a proxy share its address."""


class LimitedProtocol(H11Protocol):
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        host = self.client[0] if self.client else None
        hosts = [each.client[0] for each in self.connections if isinstance(each, H11Protocol) and each.client]
        if hosts.count(host or "") > _MAX_PER_ADDRESS:
            transport.close()
        else:
            self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Also works during a request, for example if its body is malformed: the application's answer is dropped."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # the application's answer has already begun, so no other can be sent
            self.transport.close()

    def _wait_for_request(self) -> None:
        """Start the time limit for the headers, at the connection or the first bytes of a later request. There is no
        limit while a request is handled."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_HEADER_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
