"""Addresses and keys of server engines: invalid ones are refused at once, and no secret is quoted."""

import socket
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from chunksink.settings.errors import ConfigError
from chunksink.settings.load import load_config
from chunksink.sinks.conformance.samples import marker
from chunksink.sinks.contract import Sink
from chunksink.sinks.errors import Refused, Unreachable
from chunksink.sinks.registry import open_sink
from chunksink.wiring import open_one_sink
from tests.engines.other_servers import answering

ENGINES = ["meilisearch", "chroma"]
NO_ADDRESSES = [
    *("localhost:8000", "127.0.0.1:9", "ftp://host", "", "http://a..b:8000", "http://["),
    *("http://my\u2013host:8000", "http://a\udcff:8000", "http://127.0.0.1:8000\n", "http://127.0.0.1:99999"),
    *("https://user:hunter2@host", "http://hunter2@host", "http://user:hunter2", "user:hunter2", "http://[hunter2"),
]
NONE_OF_CHROMA = ["http://", "http://host:8000/chroma", "http://host:8000/?x=1"]
NONE_OF_POSTGRES = [*filter(None, NO_ADDRESSES), "postgresql://a..b/x", "postgresql://user:hunter2@["]
CASES = [
    *((engine, url) for engine in ENGINES for url in NO_ADDRESSES),
    *(("chroma", url) for url in NONE_OF_CHROMA),
    *(("postgres", url) for url in NONE_OF_POSTGRES),
]


@pytest.mark.parametrize(("engine", "url"), CASES)
def test_invalid_address_is_refused_and_not_repeated(tmp_path: Path, engine: str, url: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT") as error:
        open_sink(engine, tmp_path, {"url": url})
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize("engine", [*ENGINES, "postgres"])
def test_invalid_address_is_reported_by_the_place_that_set_it(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "chunksink.toml"
    file.write_text(f'[sink.{engine}]\nurl = "nonsense:/hunter2"\n')
    places = [(f"{file}: [sink.{engine}]: ", "")]
    if engine == "meilisearch":
        places.append(("MEILI_URL: ", "MEILI_URL"))
    name = f"CHUNKSINK_SINK_{engine.upper()}_URL"
    for beginning, variable in [*places, (f"{name}: ", name)]:
        if variable:
            monkeypatch.setenv(variable, "nonsense:/hunter2")
        config = load_config({"sinks": (engine,)}, place=tmp_path)
        with pytest.raises(ConfigError) as error, ExitStack() as stack:
            open_one_sink(config, stack, engine)
        assert str(error.value).startswith(beginning)
        assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("key", ["hun\nter2", "hun ter2", "hünter2", "hun\x7fter2"])
@pytest.mark.parametrize("engine", ENGINES)
def test_bad_key_is_reported_by_its_option(
    engine: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    option = {"meilisearch": "key_variable", "chroma": "token_variable"}[engine]
    monkeypatch.setenv("ITS_KEY", key)
    message = f"^option {option} of the sink {engine}: the environment variable ITS_KEY "
    with pytest.raises(ConfigError, match=message) as caught:
        open_sink(engine, tmp_path, {"url": "http://127.0.0.1:1", option: "ITS_KEY"})
    assert "ter2" not in "".join(traceback.format_exception(caught.value))


def calls(sink: Sink) -> list[Callable[[], object]]:
    return [sink.builds, lambda: sink.open("b1"), lambda: sink.create(marker(), 8), lambda: sink.drop("b1")]


@pytest.mark.parametrize(("engine", "scheme"), [*((engine, "http") for engine in ENGINES), ("postgres", "postgresql")])
def test_missing_server_is_unreachable(engine: str, scheme: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        sink = open_sink(engine, tmp_path, {"url": f"{scheme}://127.0.0.1:{taken.getsockname()[1]}"})
        for call in calls(sink):
            with pytest.raises(Unreachable, match=r"(?i)start it, or correct the "):
                call()


@pytest.mark.parametrize(
    ("body", "status"), [("<html>Hello!</html>", status) for status in (404, 200, 301)] + [("{}", 200), ("[1]", 200)]
)
@pytest.mark.parametrize("engine", ENGINES)
def test_other_server_at_the_address_is_refused(engine: str, body: str, status: int, tmp_path: Path) -> None:
    """A web server that is none of the engines."""
    with answering(body, status) as url:
        for call in calls(open_sink(engine, tmp_path, {"url": url})):
            with pytest.raises(Refused, match="correct the address"):
                call()
