"""Foreign removals from a Meilisearch: the sink shows exactly what is missing, and writing restores it."""

from collections.abc import Mapping
from typing import Any

import pytest

from chunksink.sinks.conformance.samples import DIMENSIONS, family, hashes_in, hashes_of, marker, rewritten
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Family
from chunksink.sinks.errors import BuildMissing, Refused
from chunksink.sinks.meilisearch import MeilisearchBuild, MeilisearchSink
from chunksink.sinks.meilisearch.indexes import Indexes
from tests.support.meilisearch import ALPHA, BETA, Server, build_of, id_of_new, public_texts


def index_of(build: MeilisearchBuild) -> str:
    return build._name


def write(build: MeilisearchBuild, families: list[Family]) -> None:
    build.replace(families)
    assert build.flush() == []


def test_foreign_field_is_found_by_a_content_scan_and_removed(server: Server, sink: MeilisearchSink) -> None:
    families = [family("a", ALPHA), family("b", BETA)]
    build = build_of(sink, families)
    tampered = families[0].documents[0].id
    server.do("PUT", f"/indexes/{index_of(build)}/documents", json=[{"id": tampered, "zzz": 1}])
    assert [found.id for found in build.scan(content=True) if found.document is None] == [tampered]
    write(build, [rewritten(each) for each in families])
    assert hashes_in(build, content=True) == hashes_of(families)
    assert all(found.document is not None for found in build.scan(content=True))


def test_old_index_under_the_public_name_is_recognised_by_its_marker(server: Server, sink: MeilisearchSink) -> None:
    old, new = marker(), marker()
    for signed, texts in ((old, ALPHA), (new, BETA)):
        write(sink.create(signed, DIMENSIONS), [family("a", texts)])
    sink.flip(None, old.build_id)
    sink.flip(old.build_id, new.build_id)
    swap_back = [{"indexes": [server.index, f"{server.index}-{new.build_id}"]}]
    server.do("POST", "/swap-indexes", json=swap_back)
    assert public_texts(server) == set(ALPHA)
    assert live(server, sink) == old
    assert sink.open(new.build_id).marker() == new
    with pytest.raises(Refused, match=f"is build {old.build_id}, not {new.build_id}"):
        sink.flip(new.build_id, id_of_new(sink))
    sink.flip(old.build_id, new.build_id)
    assert (live(server, sink), public_texts(server)) == (new, set(BETA))
    assert hashes_in(sink.open(new.build_id)) == hashes_of([family("a", BETA)])


def live(server: Server, sink: MeilisearchSink) -> Marker | None:
    return sink._indexes.inspect(server.index).marker


@pytest.mark.parametrize("public", [False, True])
def test_dropped_index_is_missing(public: bool, server: Server, sink: MeilisearchSink) -> None:
    signed, families = marker(), [family("a", ALPHA), family("b", BETA)]
    build = sink.create(signed, DIMENSIONS)
    write(build, families)
    if public:
        sink.flip(None, signed.build_id)
        build = sink.open(signed.build_id)
    server.do("DELETE", f"/indexes/{index_of(build)}")
    assert sink.builds() == []
    for call in (lambda: sink.open(signed.build_id), build.marker, build.count, lambda: hashes_in(build)):
        with pytest.raises(BuildMissing, match="run `chunksink sync`"):
            call()
    build.delete([families[0].parent_id])
    with pytest.raises(BuildMissing, match="run `chunksink sync`"):
        build.flush()


@pytest.mark.parametrize("public", [False, True])
def test_index_dropped_while_signed_is_created_again(
    public: bool, server: Server, sink: MeilisearchSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the marker alone Meilisearch would create an index that permanently refuses every document."""
    signed, families = marker(), [family("a", ALPHA)]
    build = sink.create(signed, DIMENSIONS)
    write(build, families)
    if public:
        sink.flip(None, signed.build_id)
        build = sink.open(signed.build_id)
    change = Indexes.change_settings

    def dropped_first(indexes: Indexes, name: str, patch: Mapping[str, Any]) -> None:
        server.do("DELETE", f"/indexes/{name}")
        change(indexes, name, patch)

    with monkeypatch.context() as patch:
        patch.setattr(Indexes, "change_settings", dropped_first)
        with pytest.raises(BuildMissing, match="was removed during a write"):
            build.sign(signed)
    with pytest.raises(BuildMissing):
        sink.open(signed.build_id)
    assert sink.builds() == []
    anew = sink.create(signed, DIMENSIONS)
    write(anew, families)
    anew.sign(signed)
    assert hashes_in(sink.open(signed.build_id), content=True) == hashes_of(families)
    if public:
        sink.flip(None, signed.build_id)
        assert public_texts(server) == {*ALPHA}
    sink.drop(signed.build_id)
    assert server.names() == set()
