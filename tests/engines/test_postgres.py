"""The PostgreSQL of the tests: its extensions, a kill and restart, and programs that `nobody` can't reach."""

import shutil
from pathlib import Path

import psycopg
import pytest

from tests.conftest import need
from tests.engines.postgres_folders import USER
from tests.engines.servers import PostgresServer, run_postgres
from tools import engines


def test_server_has_vectors_text_search_and_trigrams(postgres_server: PostgresServer) -> None:
    with psycopg.connect(postgres_server.url) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        connection.execute("CREATE TEMP TABLE found (id int, v vector(2), words tsvector)")
        connection.execute("CREATE INDEX ON found USING hnsw (v vector_cosine_ops)")
        connection.execute("CREATE INDEX ON found USING gin (words)")
        connection.execute("INSERT INTO found VALUES (1, '[1,0]', to_tsvector('simple', 'Äpfel')), (2, '[0,1]', NULL)")
        nearest = connection.execute("SELECT id FROM found ORDER BY v <=> '[0.9,0.1]' LIMIT 1").fetchone()
        worded = connection.execute("SELECT id FROM found WHERE words @@ to_tsquery('simple', 'ÄPFEL')").fetchone()
        alike = connection.execute("SELECT similarity('password', 'pasword') > 0.4").fetchone()
    assert (nearest, worded, alike) == ((1,), (1,), (True,))
    assert postgres_server.key not in repr(postgres_server)


def test_killed_server_returns_on_its_port_with_its_data(tmp_path: Path) -> None:
    need("postgres")
    with run_postgres(data=tmp_path / "data") as first:
        with psycopg.connect(first.url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
        first.kill()
    with (
        run_postgres(data=tmp_path / "data", key=first.key, port=first.port) as second,
        psycopg.connect(second.url) as connection,
    ):
        assert second.url == first.url
        assert connection.execute("SELECT number FROM kept").fetchone() == (7,)


@pytest.mark.skipif(not USER, reason="only root runs PostgreSQL as another user")
def test_programs_in_a_private_folder_run_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = need("postgres")
    inside = engines.PROGRAMS["postgres"]
    if not program.match(str(inside)):
        pytest.skip("the PostgreSQL of this machine, which is not copied")
    shutil.copytree(program.parents[len(inside.parts) - 1], tmp_path / "private", symlinks=True)
    (tmp_path / "private").chmod(0o700)
    monkeypatch.setenv("CHUNKSINK_TEST_POSTGRES", str(tmp_path / "private" / inside))
    with run_postgres() as server:
        psycopg.connect(server.url).close()
