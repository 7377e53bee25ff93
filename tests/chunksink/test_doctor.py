"""`chunksink doctor` finds the problems that would make a run fail, and its remedies work."""

import json
import shutil
import socket
import sqlite3
import sys
import tarfile
import uuid
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.storage import open_storage
from chunksink.command_line.exits import Exit
from chunksink.doctor import machine
from chunksink.rebuild.locks import writing
from chunksink.sinks.chroma.reader import ChromaReader
from chunksink.sinks.registry import open_sink
from tests.chunksink.doctor_checks import SOURCES, checks, is_sound, problems
from tests.chunksink.shell import Shell, write
from tests.embeddings.endpoint import serve
from tests.engines.servers import ChromaServer, PostgresServer, S3Server
from tests.faults.proxy import Fault, Proxy
from tests.support.bus import commit, source
from tests.support.damaged_files import foreign
from tests.support.rerank_server import rerank_server
from tests.support.users import as_nobody, copy_of_nobody, take_away

# -- this machine ------------------------------------------------------------------------------------------------------


def test_doctor_of_a_sound_index_passes_and_changes_nothing(built: Shell) -> None:
    before = built.files()
    found = checks(built, Exit.OK)
    assert problems(found) == {}
    assert {"python", "sqlite", "configuration", "chunks", "home", "disk", "ingest", "index", "locks"} <= set(found)
    assert {"sink fts", "sink chroma", "live in fts", "live in chroma", "model", "cache"} <= set(found)
    assert sqlite3.sqlite_version in found["sink fts"]["found"]
    assert "all-MiniLM-L6-v2 is on this machine" in found["model"]["found"]
    assert built.files() == before


def test_doctor_names_no_recall_of_a_sink_that_cannot_measure_it(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "recall of chroma" in checks(built, Exit.OK)
    monkeypatch.delattr(ChromaReader, "nearest")
    assert "recall of chroma" not in checks(built, Exit.OK)


@pytest.mark.promise(12)
def test_a_new_home_is_for_its_owner_alone(shell: Shell) -> None:
    (shell.folder / "docs").mkdir()
    (shell.folder / "docs" / "a.md").write_text("# A cat")
    assert shell("ingest", "docs", "--sync").code == Exit.OK
    mode = {path.name: path.stat().st_mode & 0o777 for path in [shell.home, *shell.home.rglob("*")]}
    assert mode[shell.home.name] == 0o700
    run = next((shell.home / "runs").iterdir()).name
    assert {mode[name] for name in ("state.db", "vectors.db", "ingest.db", run)} == {0o600}
    assert "mode" not in checks(shell, Exit.OK)["home"]["found"]
    shell.home.chmod(0o755)  # which is respected
    assert shell("sync").code == Exit.OK
    assert checks(shell, Exit.OK)["home"]["verdict"] == "warn"


def test_doctor_prints_a_line_per_check_and_its_remedy_below(built: Shell) -> None:
    shutil.rmtree(built.root.path)
    ended = built("doctor")
    assert ended.code == Exit.ENGINE
    lines = ended.out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("fail  chunks "))
    assert "make chunks with `chunksink ingest`" in lines[place + 1]


def test_doctor_without_a_home_creates_none(built: Shell) -> None:
    shutil.rmtree(built.home)
    assert is_sound(built)
    assert not built.home.exists()


def test_home_without_permission_fails_and_the_other_checks_are_made(quick_shell: Shell) -> None:
    quick_shell.synced(**SOURCES)
    assert is_sound(quick_shell)
    quick_shell.folder.chmod(0o711)
    quick_shell.home.chmod(0)
    try:
        with as_nobody():
            found = checks(quick_shell)
    finally:
        quick_shell.home.chmod(0o700)
    wrong = problems(found)
    assert {"home", "ingest", "index", "sink fts", "cache"} <= set(wrong)
    assert {"disk", "locks", "model"} <= set(found)


def test_record_of_another_user_is_skipped_and_doctor_names_its_owner(quick_shell: Shell) -> None:
    quick_shell.synced(**SOURCES)
    quick_shell.folder.chmod(0o711)
    with copy_of_nobody(quick_shell.home) as home:
        [record] = (home / "runs").iterdir()
        at = ("--home", str(home))
        take_away(record)
        with as_nobody():
            assert quick_shell("search", "cat", *at).code == Exit.OK
            assert quick_shell("status", "--check", *at).code == Exit.OK
            assert quick_shell("runs", "--json", *at).json == []
            assert quick_shell("backup", str(home / "out.tar.gz"), *at).code == Exit.OK
            found = json.loads(quick_shell("doctor", "--json", *at).out)
        with tarfile.open(home / "out.tar.gz") as tar:
            assert "state.db" in tar.getnames() and f"runs/{record.name}" not in tar.getnames()
        wrong = {check["name"]: check for check in found if check["verdict"] == "fail"}
        assert f"{record} of {record.owner()}" in wrong["home"]["found"]
        assert f"chown -R {home.owner()} {home}" in wrong["home"]["remedy"]


@pytest.mark.parametrize("invalid", ["modle = 'x'", "[fields.year]"])
def test_doctor_with_an_invalid_configuration_ends_after_that_check(invalid: str, shell: Shell) -> None:
    (shell.folder / "chunksink.toml").write_text(invalid)
    found = checks(shell)
    assert list(found) == ["python", "sqlite", "configuration"]
    assert invalid.split(" = ")[0] in found["configuration"]["found"]


def test_variables_are_shown_without_their_values(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_PATIENCE", "77.25")
    found = checks(built, Exit.OK)
    assert found["configuration"]["found"] == "no chunksink.toml; the environment sets CHUNKSINK_PATIENCE"
    assert "77.25" not in json.dumps(found)
    monkeypatch.setenv("CHUNKSINK_MODLE", "x")
    found = checks(built, Exit.OK)
    assert problems(found) == {"configuration": "warn"}
    assert "no setting is called CHUNKSINK_MODLE" in found["configuration"]["found"]


def test_low_disk_other_writer_and_impossible_home_are_reported(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with writing(built.home):
        assert problems(checks(built, Exit.OK)) == {"locks": "warn"}
    monkeypatch.setattr(machine, "MIN_FREE_BYTES", 10**18)
    assert checks(built, Exit.OK)["disk"]["verdict"] == "warn"
    monkeypatch.setattr(machine, "FULL_BYTES", 10**18)
    assert checks(built)["disk"]["verdict"] == "fail"
    (built.folder / "file").write_text("")
    monkeypatch.setenv("CHUNKSINK_HOME", "file/home")
    assert checks(built)["home"]["verdict"] == "fail"


@pytest.mark.parametrize("model", ["./nowhere", "nobody/nothing", "./empty"])
def test_missing_model_or_missing_weights_fail(model: str, built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    write(built, "empty/config.json", "{}")
    monkeypatch.setenv("CHUNKSINK_MODEL", model)
    found = checks(built)
    assert problems(found) == {"model": "fail"}
    assert ("no weights in" in found["model"]["found"]) == (model == "./empty")


@pytest.mark.promise(12)
@pytest.mark.parametrize(("key", "code"), [(None, Exit.ENGINE), ("to p-secret", Exit.ENGINE), ("top-secret", Exit.OK)])
def test_endpoint_key_is_checked_but_neither_sent_nor_shown(
    key: str | None, code: Exit, built: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_ENDPOINT_KEY_VARIABLE", "MY_KEY")
    if key is not None:
        monkeypatch.setenv("MY_KEY", key)
    with serve() as server:
        monkeypatch.setenv("CHUNKSINK_ENDPOINT", server.url)
        found = checks(built, code)
        assert server.requests == []
    assert problems(found) == ({"endpoint": "fail"} if code else {})
    assert "MY_KEY" in found["endpoint"]["found"]
    assert "secret" not in json.dumps(found)


def test_unreachable_endpoint_fails(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "ENDPOINT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for url in ("http://127.0.0.1:9/v1", f"http://127.0.0.1:{silent.getsockname()[1]}/v1"):
            monkeypatch.setenv("CHUNKSINK_ENDPOINT", url)
            found = checks(built)
            assert problems(found) == {"endpoint": "fail"}
            assert f"{url} does not answer: " in found["endpoint"]["found"]
    for variable, value in (("ALL_PROXY", "strange://127.0.0.1:1"), ("SSL_CERT_FILE", "nowhere.pem")):
        monkeypatch.setenv("CHUNKSINK_ENDPOINT", "https://192.0.2.1/v1")
        monkeypatch.setenv(variable, value)
        found = checks(built)
        assert (problems(found), variable in found["endpoint"]["found"]) == ({"endpoint": "fail"}, True)
        monkeypatch.delenv(variable)


@pytest.mark.promise(12)
def test_reranker_is_checked_but_no_text_is_sent(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(table: str, code: Exit) -> str:
        write(built, "chunksink.toml", f"[rerank]\n{table}")
        found = checks(built, code)
        assert "secret" not in json.dumps(found)
        return problems(found).get("rerank", "ok")

    assert verdict("model = './nowhere'", Exit.ENGINE) == "fail"
    assert verdict("url = 'http://127.0.0.1:9/rerank'", Exit.ENGINE) == "fail"
    assert verdict("url = 'http://user:secret@127.0.0.1:9/rerank'", Exit.ENGINE) == "fail"
    with rerank_server() as server:
        assert verdict(f"url = '{server.url}'", Exit.OK) == "ok"
        assert verdict(f"url = '{server.url}'\nkey_variable = 'MY_KEY'", Exit.ENGINE) == "fail"
        monkeypatch.setenv("MY_KEY", "top-secret")
        assert verdict(f"url = '{server.url}'\nkey_variable = 'MY_KEY'", Exit.OK) == "ok"
        assert (server.requests, server.keys) == ([], [])


# -- buckets and Ray ---------------------------------------------------------------------------------------------------


def test_chunks_in_a_bucket_are_listed_and_read(
    bucket: str, s3_server: S3Server, quick_shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_CHUNKS", bucket)
    commit(BusRoot.at(bucket, quick_shell.folder / "writer"), "p", source("a.md", "a cat"))
    with Proxy(s3_server.url) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        assert checks(quick_shell, Exit.OK)["chunks"]["verdict"] == "ok"
        for part in (b"list-type=2", b"p.manifest.json"):
            proxy.inject(Fault("denied", status=403), lambda _, request, part=part: part in request.partition(b"\n")[0])
            assert problems(checks(quick_shell)) == {"chunks": "fail"}
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    found = checks(quick_shell)
    assert problems(found) == {"chunks": "fail"}
    assert ".[s3]" in found["chunks"]["found"]


def test_ray_and_its_segments_are_checked(bucket: str, quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("CHUNKSINK_ENGINE", "ray")
    quick_shell.commit("p", source("a.md", "a cat"))

    def found_with(code: Exit = Exit.ENGINE, **options: str) -> dict[str, str]:
        lines = [f'{name} = "{value}"' for name, value in options.items()]
        write(quick_shell, "chunksink.toml", "\n".join(["[ray]", *lines]))
        return problems(checks(quick_shell, code))

    write(quick_shell, "file", "")
    assert found_with(Exit.OK) == {}
    assert found_with(segments="file/segments") == {"segments": "fail"}
    assert found_with(Exit.OK, segments=bucket) == {}
    assert list(open_storage(bucket).entries("")) == []
    assert found_with(segments="s3://there-is-no-such-bucket/a") == {"segments": "fail"}
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert found_with(Exit.OK, address=address) == {}
    assert found_with(address=address) == {"ray": "fail"}
    monkeypatch.setenv("RAY_ADDRESS", address)
    assert found_with(address="auto") == {"ray": "fail"}
    monkeypatch.setitem(sys.modules, "ray", None)
    assert found_with() == {"ray": "fail"}
    monkeypatch.setitem(sys.modules, "pyarrow.ipc", None)
    assert found_with() == {"ray": "fail", "segments": "fail"}


# -- engines -----------------------------------------------------------------------------------------------------------


def test_deleted_or_unreadable_live_builds_fail_with_working_remedies(built: Shell) -> None:
    for sink in ("fts", "chroma"):
        with closing(open_sink(sink, built.home, {})) as opened:
            opened.drop(built.live().builds[sink])
    found = checks(built)
    assert problems(found) == {"live in fts": "fail", "live in chroma": "fail"}
    assert all("`chunksink sync`" in found[f"live in {sink}"]["remedy"] for sink in ("fts", "chroma"))
    assert built("sync").code == Exit.OK  # the remedy that the check names
    assert is_sound(built)
    foreign(Path(built("endpoints", "--json").json["sinks"]["fts"]["path"]))
    assert problems(checks(built)) == {"live in fts": "fail"}
    assert built("verify", "--repair").code == Exit.OK
    assert is_sound(built)


def test_new_unreachable_and_unknown_sinks_are_reported(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl,meilisearch,nonsense")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_URL", "http://127.0.0.1:9")
    found = checks(built)
    assert problems(found) == {"sink meilisearch": "fail", "sink nonsense": "fail"}
    assert "http://127.0.0.1:9" in found["sink meilisearch"]["found"]
    assert "Installed: " in found["sink nonsense"]["found"]
    assert found["live in jsonl"]["found"] == "no build yet; `chunksink sync` creates it"


@pytest.mark.parametrize(
    ("variable", "sink", "expected"),
    [
        ("CHUNKSINK_SINK_JSONL_FOLDR", "jsonl", "`foldr` (did you mean folder?)"),
        ("CHUNKSINK_SINK_JSNOL_FOLDER", "jsnol", "unknown sink 'jsnol'. Installed: chroma, fts, jsonl"),
    ],
)
def test_wrong_options_of_an_unused_sink_are_a_warning(
    variable: str, sink: str, expected: str, built: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINK_JSONL_FOLDER", "x")
    assert is_sound(built)
    monkeypatch.setenv(variable, "x")
    found = checks(built, Exit.OK)
    assert problems(found) == {f"options of {sink}": "warn"}
    assert expected in found[f"options of {sink}"]["found"]


def test_chroma_server_passes_with_its_address(
    chroma_server: ChromaServer, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.commit("p")
    monkeypatch.setenv("CHUNKSINK_SINKS", "chroma")
    monkeypatch.setenv("CHUNKSINK_SINK_CHROMA_URL", chroma_server.url)
    assert f"at {chroma_server.url}" in checks(shell, Exit.OK)["sink chroma"]["found"]


HIDDEN = "CREATE SCHEMA other; ALTER EXTENSION vector SET SCHEMA other; ALTER ROLE {0} SET search_path = "
OBSTACLES = {
    "DROP SCHEMA {0}": "CREATE SCHEMA ",
    "DROP EXTENSION vector": "CREATE EXTENSION vector",
    HIDDEN + '"$user", mine': ' search_path = "$user", mine, other',
    HIDDEN + "''": " search_path = other",
    "REVOKE TEMPORARY ON DATABASE {0} FROM PUBLIC": "GRANT TEMPORARY ",
    "ALTER SCHEMA {0} OWNER TO CURRENT_USER": "GRANT USAGE, CREATE ",
    """CREATE TABLE {0}.build_old (id text); COMMENT ON TABLE {0}.build_old IS '{{"marker":{{}}}}'""": " OWNER TO ",
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_postgres_that_a_sync_cannot_use_fails_with_a_working_remedy(
    obstacle: str, postgres_server: PostgresServer, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"d{uuid.uuid4().hex[:10]}"
    run(postgres_server.url, f"CREATE ROLE {name} LOGIN PASSWORD 'p'", f"CREATE DATABASE {name}")
    monkeypatch.setenv("CHUNKSINK_SINKS", "postgres")
    monkeypatch.setenv("CHUNKSINK_SINK_POSTGRES_SCHEMA", name)
    monkeypatch.setenv("CHUNKSINK_SINK_POSTGRES_URL", f"postgresql://{name}:p@127.0.0.1:{postgres_server.port}/{name}")
    shell.commit("p", source("a.md", "a cat"))
    database = postgres_server.url.replace("/postgres", f"/{name}")
    run(database, "CREATE EXTENSION vector", f"CREATE SCHEMA {name} AUTHORIZATION {name}", obstacle.format(name))
    found = checks(shell)
    assert problems(found) == {"sink postgres": "fail"}
    assert shell("sync").code == Exit.ENGINE
    remedy = found["sink postgres"]["found"].rpartition(" run: ")[2]
    assert OBSTACLES[obstacle] in remedy
    run(database, remedy, f"CREATE TABLE {name}.build_log (id text)")  # another program's table is no obstacle
    assert problems(checks(shell, Exit.OK)) == {"index": "warn"}, "the sync was not finished"
    assert shell("sync").code == Exit.OK
    assert is_sound(shell)


def test_postgres_before_the_first_sync_is_not_changed(
    postgres_server: PostgresServer, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"d{uuid.uuid4().hex[:10]}"
    run(postgres_server.url, f"CREATE DATABASE {name}")
    monkeypatch.setenv("CHUNKSINK_SINKS", "postgres")
    monkeypatch.setenv("CHUNKSINK_SINK_POSTGRES_URL", postgres_server.url.replace("/postgres", f"/{name}"))
    shell.commit("p")
    assert problems(checks(shell, Exit.OK)) == {}
    with psycopg.connect(postgres_server.url.replace("/postgres", f"/{name}")) as database:
        left = "SELECT nspname FROM pg_namespace WHERE nspname = 'chunksink' UNION SELECT extname FROM pg_extension"
        assert database.execute(left).fetchall() == [("plpgsql",)]


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[arg-type]
