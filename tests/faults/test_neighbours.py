"""Of two index names on one server, one a prefix of the other, neither affects the other's builds."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from chunksink.sinks.chroma import ChromaSink, Server
from chunksink.sinks.conformance.samples import DIMENSIONS, family, hashes_in, hashes_of, marker
from chunksink.sinks.contract import Marker, Sink
from chunksink.sinks.errors import BuildMissing
from chunksink.sinks.meilisearch import MeilisearchSink
from tests.support.meilisearch import SETTINGS

Connect = Callable[[str], Sink]

ONES = [family("ones", ["alpha one", "alpha two"])]
OTHERS = [family("others", ["beta one", "beta two", "beta three"])]


@pytest.fixture(scope="module", params=["chroma", "meilisearch"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """A sink by its prefix or public name."""
    server = request.getfixturevalue(f"{request.param}_server")
    if request.param == "chroma":
        return lambda name: ChromaSink(Server(server.url, prefix=name))
    return lambda name: MeilisearchSink(server.url, server.key, settings=SETTINGS, index=name)


class Home:
    """A sink with one build in it."""

    def __init__(self, sink: Sink, marker: Marker) -> None:
        self.sink, self.marker, self.id = sink, marker, marker.build_id

    def live(self) -> None:
        self.sink.flip(None, self.id)

    def content(self) -> tuple[list[str], list[tuple[str, ...]]]:
        with closing(self.sink.open(self.id)) as build:
            assert build.marker() == self.marker
            return self.sink.builds(), hashes_in(build)


@pytest.fixture(params=["live", "not live"])
def homes(request: pytest.FixtureRequest, connect: Connect) -> Iterator[tuple[Home, Home]]:
    name = f"n{uuid.uuid4().hex[:10]}"
    one, other = Home(connect(name), marker("one")), Home(connect(f"{name}-b"), marker("other"))
    for home, families in ((one, ONES), (other, OTHERS)):
        with closing(home.sink.create(home.marker, DIMENSIONS)) as build:
            build.replace(families)
            assert build.flush() == []
        if request.param == "live":
            home.live()
    yield one, other
    for home in (one, other):
        for build_id in home.sink.builds():
            home.sink.drop(build_id)
        home.sink.close()


def test_neighbours_never_open_flip_or_drop_each_others_builds(homes: tuple[Home, Home]) -> None:
    one, other = homes
    assert one.content() == ([one.id], hashes_of(ONES))
    for home, foreign in ((one, other.id), (other, one.id)):
        with pytest.raises(BuildMissing):
            home.sink.open(foreign)
        with pytest.raises(BuildMissing):
            home.sink.flip(None, foreign)
        home.sink.drop(foreign)
    assert one.content() == ([one.id], hashes_of(ONES))
    assert other.content() == ([other.id], hashes_of(OTHERS))


def test_name_taken_by_a_neighbour_is_avoided(homes: tuple[Home, Home]) -> None:
    one, other = homes
    if isinstance(one.sink, ChromaSink):
        pytest.skip("the id of a build begins with the name of its sink: no longer prefix ends so")
    same_name = replace(one.marker, build_id=f"b-{other.id}")
    with closing(one.sink.create(same_name, DIMENSIONS)) as build:
        build.replace(ONES)
        assert (build.flush(), build.marker()) == ([], same_name)
    assert one.sink.builds() == sorted([one.id, same_name.build_id])
    one.sink.drop(same_name.build_id)
    assert one.content() == ([one.id], hashes_of(ONES))
    assert other.content() == ([other.id], hashes_of(OTHERS))
