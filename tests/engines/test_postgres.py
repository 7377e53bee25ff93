"""The PostgreSQL of the tests: programs that `nobody` can't reach."""

import shutil
from pathlib import Path

import psycopg
import pytest

from tests.conftest import need
from tests.engines.postgres_folders import USER
from tests.engines.servers import run_postgres
from tools import engines


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
