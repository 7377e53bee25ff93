"""The server, its roles and its errors; several homes and readers of other programs."""

import uuid
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.settings.errors import ConfigError
from chunksink.sinks.conformance import DIMENSIONS, family, marker
from chunksink.sinks.conformance.samples import hashes_in, hashes_of
from chunksink.sinks.contract import NO_PARENT
from chunksink.sinks.errors import BuildMissing, Refused, Transient, WrongKey
from chunksink.sinks.postgres import PostgresOptions, connection, open_sink
from chunksink.sinks.postgres.build import PostgresBuild
from chunksink.sinks.postgres.connection import Connection, Server
from chunksink.sinks.postgres.schema import PROTECTION
from chunksink.sinks.postgres.sink import PostgresSink
from tests.engines.servers import PostgresServer, run_postgres
from tests.support.bus import commit, source
from tests.support.home import Home


@pytest.fixture
def schema() -> str:
    return f"s{uuid.uuid4().hex[:10]}"


@pytest.fixture
def sink(postgres_server: PostgresServer, schema: str) -> PostgresSink:
    return PostgresSink(PostgresOptions(postgres_server.url, schema=schema))


def test_a_wrong_password_is_refused_and_not_shown(postgres_server: PostgresServer) -> None:
    url = postgres_server.url.replace(postgres_server.key, "s3cret-word")
    with pytest.raises(WrongKey) as caught:
        PostgresSink(PostgresOptions(url)).builds()
    assert "s3cret-word" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "s3cret-word" not in str(PostgresSink(PostgresOptions(url)).address("b1"))


@pytest.mark.parametrize(
    ("part", "expected"),
    [("/postgres?options=-c%20role%3Ddatabase", WrongKey), ("/database", Refused)],
    ids=["role", "database"],
)
def test_a_missing_role_is_no_missing_database(
    part: str, expected: type[Exception], postgres_server: PostgresServer
) -> None:
    with pytest.raises(Refused) as caught:
        PostgresSink(PostgresOptions(postgres_server.url.replace("/postgres", part))).builds()
    assert caught.type is expected


READING_ROLE = """CREATE ROLE {0} LOGIN PASSWORD 'p';
    GRANT USAGE ON SCHEMA {0} TO {0}; GRANT SELECT ON ALL TABLES IN SCHEMA {0} TO {0}"""
LIMITS = {"ALTER ROLE {0} CONNECTION LIMIT 0": Transient, "REVOKE CONNECT ON DATABASE {0} FROM PUBLIC": WrongKey}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_refused_connection_is_no_wrong_password(limit: str, postgres_server: PostgresServer, schema: str) -> None:
    for statement in ("CREATE ROLE {0} LOGIN PASSWORD 'p'", "CREATE DATABASE {0}", limit):
        run(postgres_server, statement.format(schema))
    with pytest.raises((Transient, Refused)) as caught:
        PostgresSink(PostgresOptions(url_of(postgres_server, schema).replace("/postgres", f"/{schema}"))).builds()
    assert caught.type is LIMITS[limit]


@pytest.mark.parametrize("setting", ["search_path%3Dpg_catalog", "default_transaction_read_only%3Don"])
def test_a_build_that_cannot_be_written_is_refused_with_its_remedy(
    setting: str, postgres_server: PostgresServer, schema: str, sink: PostgresSink
) -> None:
    signed = marker()
    sink.create(signed, DIMENSIONS).close()
    limited = PostgresSink(PostgresOptions(f"{postgres_server.url}?options=-c%20{setting}", schema=schema))
    build = limited.open(signed.build_id)
    with pytest.raises(Refused, match=r"chunksink doctor|target_session_attrs"):
        build.replace([family("a", ["one"])])
    build.close()


def test_an_unknown_language_is_refused(postgres_server: PostgresServer, schema: str) -> None:
    with pytest.raises(Refused, match="klingon"):
        PostgresSink(PostgresOptions(postgres_server.url, schema=schema, language="klingon")).create(
            marker(), DIMENSIONS
        )


@pytest.mark.parametrize("options", [{"schema": "a b"}, {"pool_size": 0}, {"password": "x"}])
def test_invalid_options_are_refused(options: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        open_sink(tmp_path, options)


def test_a_role_without_permission_is_refused(postgres_server: PostgresServer, schema: str, sink: PostgresSink) -> None:
    signed = marker()
    sink.create(signed, DIMENSIONS).close()
    run(postgres_server, f"CREATE ROLE {schema} LOGIN PASSWORD 'p'")
    limited = PostgresSink(PostgresOptions(url_of(postgres_server, schema), schema=schema))
    with pytest.raises(WrongKey):
        limited.create(marker(), DIMENSIONS)
    with pytest.raises(WrongKey):
        limited.open(signed.build_id).count()


def test_a_role_that_owns_the_schema_alone_creates_and_shows_a_build(
    postgres_server: PostgresServer, schema: str
) -> None:
    run(postgres_server, "CREATE EXTENSION IF NOT EXISTS vector")
    run(postgres_server, f"CREATE ROLE {schema} LOGIN PASSWORD 'p'")
    run(postgres_server, f"CREATE SCHEMA {schema} AUTHORIZATION {schema}")
    owned = PostgresSink(PostgresOptions(url_of(postgres_server, schema), schema=schema))
    signed = marker()
    owned.create(signed, DIMENSIONS).close()
    owned.flip(None, signed.build_id)
    assert owned.shown() == signed


def test_builds_of_another_role_are_refused_with_statements_that_hand_them_over(
    postgres_server: PostgresServer, schema: str, sink: PostgresSink
) -> None:
    signed = marker()
    sink.create(signed, DIMENSIONS).close()
    sink.flip(None, signed.build_id)
    run(postgres_server, f"CREATE ROLE {schema} LOGIN PASSWORD 'p'; ALTER SCHEMA {schema} OWNER TO {schema}")
    limited = PostgresSink(PostgresOptions(url_of(postgres_server, schema), schema=schema))
    with pytest.raises(WrongKey, match=r"documents OWNER TO .*vocabulary_\w+ OWNER TO") as caught:
        limited.check_writable()
    run(postgres_server, str(caught.value).rpartition(" run: ")[2])
    limited.check_writable()
    newer = marker()
    build = limited.create(newer, DIMENSIONS)
    limited.flip(signed.build_id, newer.build_id)
    limited.drop(signed.build_id)
    build.close()


def test_a_missing_extension_is_refused_with_its_remedy(postgres_server: PostgresServer, schema: str) -> None:
    run(postgres_server, f"CREATE ROLE {schema} LOGIN PASSWORD 'p'")
    run(postgres_server, f"CREATE DATABASE {schema} OWNER {schema}")
    url = url_of(postgres_server, schema).removesuffix("/postgres") + f"/{schema}"
    with pytest.raises(Refused, match="CREATE EXTENSION vector"):
        PostgresSink(PostgresOptions(url)).create(marker(), DIMENSIONS)


def test_flip_moves_the_view_and_refuses_a_foreign_build(sink: PostgresSink, schema: str) -> None:
    one, two = marker(), marker()
    for signed, dimensions in ((one, DIMENSIONS), (two, 2 * DIMENSIONS)):  # another model may have longer vectors
        sink.create(signed, dimensions).close()
    assert sink.shown() is None
    sink.flip(None, one.build_id)
    assert sink.shown() == one
    with pytest.raises(Refused, match=schema):
        sink.flip(None, two.build_id)
    sink.flip(one.build_id, two.build_id)
    assert sink.shown() == two
    sink.flip(two.build_id, one.build_id)
    assert sink.shown() == one
    sink.drop(one.build_id)
    assert sink.shown() is None


def test_the_marker_stays_with_a_renamed_table(
    postgres_server: PostgresServer, sink: PostgresSink, schema: str
) -> None:
    signed = marker()
    sink.create(signed, DIMENSIONS).close()
    run(postgres_server, f"ALTER TABLE {schema}.build_{signed.build_id} RENAME TO build_copy")
    assert sink.open("copy").marker() == signed
    with pytest.raises(BuildMissing):
        sink.reader(signed.build_id)


def test_a_build_gets_its_search_indexes_at_the_end(sink: PostgresSink) -> None:
    build = sink.create(marker(), DIMENSIONS)
    build.replace([family("a", ["one"])])
    due = build.search_settings_due()
    assert due == ["words", "filters", "vector"]
    assert build.update_search_settings() == due
    assert build.search_settings_due() == []
    build.close()


def test_a_rebuild_writes_before_it_creates_the_search_indexes(
    postgres_server: PostgresServer, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each vector would be inserted into the full graph, which takes ten times as long."""
    counts = []
    update = PostgresBuild.update_search_settings

    def counted(build: PostgresBuild) -> list[str]:
        counts.append(build.count())
        return update(build)

    monkeypatch.setattr(PostgresBuild, "update_search_settings", counted)
    root = FolderRoot(tmp_path / "chunks")
    commit(root, "p1", source("a.md", "one", "two"))
    home = Home(tmp_path / "home", root, lambda _: PostgresSink(PostgresOptions(postgres_server.url, schema=schema)))
    home.rebuild()
    assert counts
    assert set(counts) == {2}
    assert home.plan_sync().settings == {}, "nothing is due"


def test_another_kind_of_vector_index_replaces_the_old_one(postgres_server: PostgresServer, schema: str) -> None:
    signed = marker()
    build = PostgresSink(PostgresOptions(postgres_server.url, schema=schema)).create(signed, DIMENSIONS)
    build.update_search_settings()
    build.close()
    build = PostgresSink(PostgresOptions(postgres_server.url, schema=schema, halfvec=True)).open(signed.build_id)
    assert build.update_search_settings() == ["halfvec"]
    assert build.search_settings_due() == []
    build.close()


def test_other_roles_see_only_the_documents_of_their_tenant(postgres_server: PostgresServer, schema: str) -> None:
    sink = PostgresSink(PostgresOptions(postgres_server.url, schema=schema, row_security=True))
    signed = marker()
    build = sink.create(signed, DIMENSIONS)
    ours = family("a", ["one", "two"], tenant_id="t1")
    build.replace([ours, family("b", ["three"], tenant_id="t2"), family("c", ["four"])])
    build.close()
    sink.flip(None, signed.build_id)
    run(postgres_server, READING_ROLE.format(schema))
    with psycopg.connect(url_of(postgres_server, schema)) as connection:
        select = f"SELECT text FROM {schema}.documents ORDER BY text"
        assert connection.execute(select).fetchall() == []  # type: ignore[arg-type]
        key = ours.documents[0].tenant_key
        connection.execute("SELECT set_config('chunksink.tenant_key', %s, false)", [key])
        assert connection.execute(select).fetchall() == [("one",), ("two",)]  # type: ignore[arg-type]


@pytest.mark.parametrize("is_live", [False, True], ids=["by the flip", "by the next sync"])
def test_a_build_from_before_row_security_is_protected(
    is_live: bool, postgres_server: PostgresServer, sink: PostgresSink, schema: str
) -> None:
    signed = marker()
    build = sink.create(signed, DIMENSIONS)
    build.replace([family("a", ["one"], tenant_id="t1")])
    build.close()
    secure = PostgresSink(PostgresOptions(postgres_server.url, schema=schema, row_security=True))
    if is_live:
        sink.flip(None, signed.build_id)
        build = secure.open(signed.build_id)
        assert build.update_search_settings() == [PROTECTION]
        assert build.search_settings_due() == []
        build.close()
    else:
        secure.flip(None, signed.build_id)
    run(postgres_server, READING_ROLE.format(schema))
    with psycopg.connect(url_of(postgres_server, schema)) as connection:
        assert connection.execute(f"SELECT text FROM {schema}.documents").fetchall() == []  # type: ignore[arg-type]


def test_an_index_is_created_by_one_process_where_workers_find_no_shared_memory(
    postgres_server: PostgresServer, sink: PostgresSink, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example in a container with Docker's default of 64 MB."""
    signed = marker()
    build = sink.create(signed, DIMENSIONS)
    execute, failed = psycopg.Connection.execute, []

    def without_memory(self: psycopg.Connection, statement: object, *values: object) -> object:
        if isinstance(statement, sql.Composed) and "USING hnsw" in statement.as_string() and not failed:
            failed.append(statement)
            raise psycopg.errors.DiskFull("could not resize shared memory segment")
        return execute(self, statement, *values)  # type: ignore[arg-type]

    monkeypatch.setattr(psycopg.Connection, "execute", without_memory)
    assert "vector" in build.update_search_settings()
    assert failed
    assert build.search_settings_due() == []
    build.close()


def test_the_view_keeps_its_readers_and_the_vector_index_for_vectors_of_another_length(
    postgres_server: PostgresServer, sink: PostgresSink, schema: str
) -> None:
    one, two = marker(), marker()
    sink.create(one, DIMENSIONS).close()
    sink.create(two, 2 * DIMENSIONS).close()
    sink.flip(None, one.build_id)
    run(postgres_server, f"CREATE ROLE {schema}")
    run(postgres_server, f"GRANT SELECT ON {schema}.documents TO {schema}")
    sink.flip(one.build_id, two.build_id)
    vector = [1.0] * 2 * DIMENSIONS
    nearest = f"SELECT id FROM {schema}.documents WHERE text <> '' ORDER BY embedding <=> '{vector}' LIMIT 5"
    with psycopg.connect(postgres_server.url) as connection:
        allowed = f"SELECT has_table_privilege('{schema}', '{schema}.documents', 'SELECT')"
        assert connection.execute(allowed).fetchall() == [(True,)]  # type: ignore[arg-type]
        connection.execute("SET enable_seqscan = off")
        plan = connection.execute("EXPLAIN " + nearest).fetchall()  # type: ignore[arg-type]
        assert f"build_{two.build_id}_vector" in str(plan)


@pytest.mark.parametrize("text", ["forbidden", " ".join(f"word{number}" for number in range(120_000))])
def test_a_document_that_the_server_refuses_blocks_no_other(
    text: str, postgres_server: PostgresServer, sink: PostgresSink, schema: str
) -> None:
    signed = marker()
    build = sink.create(signed, DIMENSIONS)
    build.replace([family("a", ["one", "two"])])
    run(postgres_server, f"ALTER TABLE {schema}.build_{signed.build_id} ADD CHECK (text <> 'forbidden')")
    newer = family("a", ["one", text])
    others = [family(f"b{number}", [f"text {number}"]) for number in range(5)]
    build.replace([*others[:3], newer, *others[3:]])
    [refused] = build.flush()
    assert (refused.id, refused.parent_id) == (newer.documents[1].id, newer.parent_id)
    stored = {one.text_hash for one in build.scan()}
    assert stored == {one.documents[0].text_hash for one in (*others, newer)}
    build.close()


def test_foreign_rows_without_a_family_are_found_and_removable(
    postgres_server: PostgresServer, sink: PostgresSink, schema: str
) -> None:
    signed, mine = marker(), family("a", ["mine"])
    build = sink.create(signed, DIMENSIONS)
    build.replace([mine])
    run(postgres_server, f"INSERT INTO {schema}.build_{signed.build_id} (id, text) VALUES ('stranger', 'who knows')")
    assert [stored.id for stored in build.of_families([NO_PARENT])] == ["stranger"]
    build.delete([NO_PARENT])
    assert hashes_in(build) == hashes_of([mine])
    build.close()


def test_a_search_that_gets_no_answer_ends(postgres_server: PostgresServer, schema: str) -> None:
    sink = PostgresSink(PostgresOptions(postgres_server.url, search_timeout=0.5, schema=schema))
    signed = marker()
    sink.create(signed, DIMENSIONS).close()
    reader = sink.reader(signed.build_id)
    with psycopg.connect(postgres_server.url) as other:
        other.execute(f"LOCK TABLE {schema}.build_{signed.build_id}")  # type: ignore[arg-type]
        with pytest.raises(Transient, match="search_timeout"):
            reader.search("word")
    assert reader.search("word") == []
    reader.close()


def test_a_connection_that_cannot_be_prepared_is_closed(sink: PostgresSink, monkeypatch: pytest.MonkeyPatch) -> None:
    signed = marker()
    sink.create(signed, DIMENSIONS).close()
    connect, opened = Server.connect, []

    def watched(server: Server) -> Connection:
        opened.append(connect(server))
        return opened[-1]

    monkeypatch.setattr(Server, "connect", watched)
    monkeypatch.setattr(connection, "_READS_ONLY", "SET unknown = on")
    with pytest.raises(Refused):
        sink.reader(signed.build_id)
    assert [one.closed for one in opened] == [True]


def test_build_and_reader_continue_after_the_server_was_restarted(tmp_path: Path, schema: str) -> None:
    one, two = family("a", ["red apple"]), family("b", ["blue car"])
    signed = marker()
    data = tmp_path / "data"
    with run_postgres(data=data) as server:
        sink = PostgresSink(PostgresOptions(server.url, schema=schema))
        build = sink.create(signed, DIMENSIONS)
        build.replace([one])
        reader = sink.reader(signed.build_id)
        server.kill()
        fails(lambda: build.replace([two]))
        fails(lambda: reader.search("apple"))
    with run_postgres(data=data, key=server.key, port=server.port):
        assert hashes_in(build) == hashes_of([one])
        build.replace([two])
        assert build.flush() == []
        assert hashes_in(build, content=True) == hashes_of([one, two])
        assert [hit.parent_id for hit in reader.search("apple")] == [one.parent_id]
        reader.close()
        build.close()


def fails(call: Callable[[], object]) -> None:
    with pytest.raises(Transient):
        call()


def url_of(server: PostgresServer, role: str) -> str:
    return f"postgresql://{role}:p@127.0.0.1:{server.port}/postgres"


def run(server: PostgresServer, statement: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[arg-type]
