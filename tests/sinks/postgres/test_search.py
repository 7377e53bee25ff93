"""Search in PostgreSQL: exact phrases, ranking, scripts without spaces, and both kinds of vector index."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from chunksink.sinks.conformance import DIMENSIONS, family, marker, vector
from chunksink.sinks.document import Family
from chunksink.sinks.postgres import PostgresOptions, search
from chunksink.sinks.postgres.build import PostgresBuild
from chunksink.sinks.postgres.filters import condition
from chunksink.sinks.postgres.reader import PostgresReader
from chunksink.sinks.postgres.schema import BuildTable
from chunksink.sinks.postgres.sink import PostgresSink
from chunksink.sinks.reader import Filter
from tests.engines.servers import PostgresServer

TEXTS = {
    "c": "Programs in C++ are fast.",
    "sharp": "Programs in C# run on servers.",
    "error": "The printer reports error E-417 and stops.",
    "other error": "The printer reports error E-418, page 417, and goes on.",
    "order": "a dry run shows what would happen",
    "reversed": "they run in the dry season",
    "running": "She was running home quickly.",
    "café": "The café opens at nine.",
    "tower": "東京都庁の展望台は無料です",
    "kyoto": "京都の寺は有名です",
    "path": "See docs/setup/install.md for more.",
    "stop": "to be or not to be",
    "day": "आज का दिन",
    "gift": "दान करना",
}


@pytest.fixture(scope="module")
def reader(postgres_server: PostgresServer) -> Iterator[PostgresReader]:
    sink = PostgresSink(PostgresOptions(postgres_server.url, schema=f"s{uuid.uuid4().hex[:10]}"))
    yield from reader_of(sink, [family(name, [text]) for name, text in TEXTS.items()])


def test_name_of_any_length_is_found(postgres_server: PostgresServer) -> None:
    """The name of a row is its id, which may be a long token. A btree index would refuse it."""
    long = "".join(str(uuid.uuid4()) for _ in range(200))
    one = family("a", ["one"], source={"filename": long})
    sink = PostgresSink(PostgresOptions(postgres_server.url, schema=f"s{uuid.uuid4().hex[:10]}"))
    for reader in reader_of(sink, [one]):
        assert reader.sources([Filter("filename", any_of=(long,))], 2) == [one.parent_id]


def reader_of(sink: PostgresSink, families: list[Family]) -> Iterator[PostgresReader]:
    signed = marker()
    build = sink.create(signed, DIMENSIONS)
    build.replace(families)
    assert build.flush() == []
    build.close()
    reader = sink.reader(signed.build_id)
    yield reader
    reader.close()
    sink.drop(signed.build_id)


def found(reader: PostgresReader, query: str) -> list[str]:
    name_of = {family(name, [text]).parent_id: name for name, text in TEXTS.items()}
    return [name_of[hit.parent_id] for hit in reader.search(query)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"C++"', ["c"]),
        ('"c#"', ["sharp"]),
        ('"dry run"', ["order"]),
        ('"error E-417"', ["error"]),
        ('"Café opens"', ["café"]),
        ('"京都の寺"', ["kyoto"]),
        ('"run running"', []),
        ('"दान"', ["gift"]),
        ("दिन", ["day"]),
    ],
)
def test_search_with_quotes_finds_exactly_the_phrase(reader: PostgresReader, query: str, expected: list[str]) -> None:
    assert found(reader, query) == expected
    count = {facet.value for facet in reader.facets(query, ["parent_id"])["parent_id"]}
    assert len(count) == len(expected)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("E-417", "error"),
        ("runs home", "running"),
        ("cafe ", "café"),
        ("展望台", "tower"),
        ("寺", "kyoto"),
        ("install.md", "path"),
        ("to be", "stop"),
        ("quick", "running"),
        ("serv", "sharp"),
    ],
)
def test_search_finds_the_best_document_first(reader: PostgresReader, query: str, first: str) -> None:
    assert found(reader, query)[0] == first


def test_snippets_mark_all_forms_of_a_word(reader: PostgresReader) -> None:
    (hit, *_) = reader.search("runs home ")
    pieces = reader.snippets("runs home ", [hit.id])[hit.id]
    assert [piece.text for piece in pieces if piece.match] == ["running", "home"]
    assert "".join(piece.text for piece in pieces) == TEXTS["running"]


def test_a_rare_word_counts_more_than_a_common_one(postgres_server: PostgresServer) -> None:
    sink = PostgresSink(PostgresOptions(postgres_server.url, schema=f"s{uuid.uuid4().hex[:10]}"))
    rare = family("rare", ["a zebra"])
    for reader in reader_of(sink, [*(family(f"{n}", ["printer printer printer"]) for n in range(20)), rare]):
        assert reader.search("printer zebra ")[0].parent_id == rare.parent_id


@pytest.fixture
def analysed(postgres_server: PostgresServer) -> Iterator[tuple[PostgresBuild, PostgresReader]]:
    """A build with the planner's statistics: "printer" in 20 documents, "zebra" in one."""
    sink = PostgresSink(PostgresOptions(postgres_server.url, schema=f"s{uuid.uuid4().hex[:10]}"))
    signed = marker()
    build = sink.create(signed, DIMENSIONS)
    build.replace([*(family(f"{n}", ["printer printer printer"]) for n in range(20)), family("rare", ["a zebra"])])
    build.update_search_settings()
    reader = sink.reader(signed.build_id)
    yield build, reader
    reader.close()
    build.close()


def test_the_statistics_of_the_planner_weigh_common_words(
    analysed: tuple[PostgresBuild, PostgresReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_MAX_COUNTED", 1)  # counting cannot tell which word is common
    _, reader = analysed
    assert reader.search("printer zebra ")[0].parent_id == family("rare", ["a zebra"]).parent_id


def test_an_emptied_build_with_old_statistics_finds_nothing(analysed: tuple[PostgresBuild, PostgresReader]) -> None:
    build, reader = analysed
    build.delete([one.parent_id for one in build.scan()])
    build.scrub()
    assert reader.search("printer zebra ") == []


@pytest.mark.parametrize("halfvec", [False, True])
def test_query_finds_all_that_pass_a_filter_however_few(postgres_server: PostgresServer, halfvec: bool) -> None:
    sink = PostgresSink(PostgresOptions(postgres_server.url, schema=f"s{uuid.uuid4().hex[:10]}", halfvec=halfvec))
    families = [family(f"{n}", [f"text {n}"], metadata={"year": 2000 + (n == 500)}) for n in range(600)]
    for reader in reader_of(sink, families):
        hits = reader.query(vector("text 3"), 5)
        assert hits[0].parent_id == families[3].parent_id
        assert hits[0].score == pytest.approx(1, abs=1e-4)
        assert len(hits) == 5
        (only,) = reader.query(vector("text 3"), 5, [Filter("year", any_of=(2001,))])
        assert only.parent_id == families[500].parent_id
        assert reader.nearest(vector("text 9"), 1) == [families[9].documents[0].id]


@pytest.mark.parametrize(
    "one",
    [
        Filter("fields.project", any_of=("apollo",)),
        Filter("fields.labels", any_of=("red", "green"), is_list=True),
        Filter("tags", any_of=("red",)),
    ],
    ids=lambda one: one.field,
)
def test_a_filter_uses_an_index(one: Filter, postgres_server: PostgresServer) -> None:
    schema = f"s{uuid.uuid4().hex[:10]}"
    sink = PostgresSink(PostgresOptions(postgres_server.url, schema=schema))
    signed = marker()
    build = sink.create(signed, DIMENSIONS)
    build.update_search_settings()
    build.close()
    found = condition([one])
    select = sql.SQL("EXPLAIN SELECT id FROM {} WHERE {}").format(BuildTable(schema, signed.build_id).table, found.text)
    with psycopg.connect(postgres_server.url) as connection:
        connection.execute("SET enable_seqscan = off")
        plan = connection.execute(select, found.values).fetchall()
    assert f"build_{signed.build_id}_filters" in str(plan)


def test_a_misspelt_word_is_replaced_by_one_that_the_tenant_has(postgres_server: PostgresServer) -> None:
    families = [family("a", ["The battery is empty"], tenant_id="t1"), family("b", ["a buttery cake"], tenant_id="t2")]
    sink = PostgresSink(PostgresOptions(postgres_server.url, schema=f"s{uuid.uuid4().hex[:10]}"))
    for reader in reader_of(sink, families):
        assert reader.corrections("batery is empty") == {"batery": "battery"}
        assert reader.corrections("battery") == {}
        tenant = families[1].documents[0].tenant_key
        assert tenant is not None
        assert reader.corrections("battery", [Filter("tenant_key", any_of=(tenant,))]) == {"battery": "buttery"}


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("Prüfung ", "Die Prüfungen sind schwer.", ["Prüfungen"]),
        ("Prüfungen ", "Die Pru\u0308fung ist schwer.", ["Pru\u0308fung"]),
        ("STRASSE ", "Straße und Stra\u00dfen", ["Straße", "Straßen"]),
        ("mu\u0308sli ", "Das Müsli " + "ist weit weg " * 30, ["Müsli"]),
        ("がくせい", "大学のがくせいです", ["がくせい"]),
        ("lodz thingvellir ", "Łódź, Þingvellir", ["Łódź", "Þingvellir"]),
        ("1275 المحول ", "المحو\u0651ل ١٢٧٥", ["المحو\u0651ل", "١٢٧٥"]),
    ],
)
def test_snippets_mark_words_with_accents(
    postgres_server: PostgresServer, query: str, text: str, marked: list[str]
) -> None:
    options = PostgresOptions(postgres_server.url, schema=f"s{uuid.uuid4().hex[:10]}", language="german")
    one = family("a", [text])
    for reader in reader_of(PostgresSink(options), [one]):
        pieces = reader.snippets(query, [one.documents[0].id])[one.documents[0].id]
        assert [piece.text for piece in pieces if piece.match] == marked
        assert text.startswith("".join(piece.text for piece in pieces).removesuffix("…"))


def test_a_correction_has_the_accents_that_documents_have(postgres_server: PostgresServer) -> None:
    families = [
        family("a", ["Die Prüfungen im Mai"], tenant_id="t1"),
        family("b", ["Die Prüfung"], metadata={"tags": ["CAFÉTERIA"]}, tenant_id="t2"),
        family("c", ["Die end_prufung"], tenant_id="t3"),
    ]
    sink = PostgresSink(PostgresOptions(postgres_server.url, schema=f"s{uuid.uuid4().hex[:10]}", language="german"))
    of = [[Filter("tenant_key", any_of=(str(one.documents[0].tenant_key),))] for one in families]
    for reader in reader_of(sink, families):
        assert reader.corrections("prüfnug cafetteria ", of[1]) == {"prüfnug": "prüfung", "cafetteria": "caféteria"}
        assert reader.corrections("prüfnug ", of[2]) == {"prüfnug": "prufung"}
        assert reader.corrections("prüfunken ", of[0]) == {"prüfunken": "prüfungen"}
        assert reader.corrections("prüfnug ", of[0]) == {}, "a tenant gets no word that only others have"


def test_scrubbed_builds_have_no_words_of_removed_documents(postgres_server: PostgresServer) -> None:
    schema, signed = f"s{uuid.uuid4().hex[:10]}", marker()
    sink = PostgresSink(PostgresOptions(postgres_server.url, schema=schema))
    build = sink.create(signed, DIMENSIONS)
    gone, stays = family("a", ["quokka"]), family("b", ["numbat"])
    build.replace([gone, stays])
    build.delete([gone.parent_id])
    build.scrub()
    build.close()
    with psycopg.connect(postgres_server.url) as connection:
        words = connection.execute(f"SELECT word FROM {schema}.vocabulary_{signed.build_id}").fetchall()  # type: ignore[arg-type]
    assert ("numbat",) in words
    assert ("quokka",) not in words
