"""Addresses, options and tokens of a Chroma server: refused at once, and never quoted with a secret."""

import gc
import traceback
import warnings
from pathlib import Path

import httpx
import pytest

from chunksink.settings.config import ConfigError
from chunksink.sinks.chroma import ChromaBuild, ChromaSink, open_sink
from chunksink.sinks.conformance.samples import marker
from chunksink.sinks.errors import BuildMissing, WrongKey
from tests.engines.servers import ChromaServer


@pytest.mark.parametrize("name", ["timeout", "search_timeout", "prefix"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "a b/ü", "", "-x"])
def test_options_that_chroma_cannot_take_are_refused_at_once(tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        open_sink(tmp_path, {"url": "http://127.0.0.1:1", name: value})


def test_a_header_that_the_client_refuses_is_not_quoted(build: ChromaBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise httpx.LocalProtocolError("Illegal header value b'hunter2'")

    monkeypatch.setattr(build._handle.opened().collection, "count", refuse)
    with pytest.raises(WrongKey) as error:
        build.count()
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_no_connection_is_left_open(chroma_server: ChromaServer) -> None:
    def unclosed() -> list[str]:
        return [told for one in seen if "unclosed <socket" in (told := str(one.message)) and port in told]

    port = str(httpx.URL(chroma_server.url).port)
    gc.collect()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        sink = ChromaSink.server(chroma_server.url, prefix="hung-up")
        signed = marker()
        sink.create(signed, 8).close()
        sink.open(signed.build_id).close()
        with pytest.raises(BuildMissing):
            sink.open("nobody")
        sink.drop(signed.build_id)
        sink.close()
        gc.collect()
    assert unclosed() == []


def test_credentials_are_in_no_message(chroma_server: ChromaServer) -> None:
    sink = ChromaSink.server(chroma_server.url, token="hunter2")
    with pytest.raises(BuildMissing) as missing:
        sink.open("nobody")
    assert "hunter2" not in repr(missing.value) + repr(sink) + repr(vars(sink))
