"""From documents to a searchable index, with the chunks in a real bucket."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from chunksink.chunkbus.errors import StorageError
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.storage import open_storage
from chunksink.command_line.exits import Exit
from chunksink.command_line.watch import BusWatch
from chunksink.ingest.errors import IngestBusy
from chunksink.ingest.options import Options
from chunksink.ingest.roots import Roots
from chunksink.ingest.run import ingest
from chunksink.rebuild.run_records import past_runs
from tests.conftest import ROOT
from tests.engines.servers import S3Server
from tests.faults.proxy import Proxy
from tests.journey.support import Ended, chunksink
from tests.support.bus import commit, source


def test_ingest_sync_edit_sync_verify(bucket: str, s3_server: S3Server, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "handbook", tmp_path / "handbook")
    variables = s3_server.variables() | {"CHUNKSINK_CHUNKS": bucket}

    def run(*arguments: str) -> Ended:
        ended = chunksink(tmp_path, *arguments, **variables)
        assert ended.code == Exit.OK, ended.err
        assert s3_server.key not in ended.out + ended.err
        return ended

    run("ingest", "handbook", "--sync")
    page = tmp_path / "handbook" / "kitchen.md"
    page.write_text(page.read_text(encoding="utf-8") + "\nThe quokka feeds itself.\n", encoding="utf-8")
    assert run("ingest", "handbook", "--sync", "--json").json["ingest"]["processed"] == 1
    assert "kitchen.md" in run("search", "quokka", "--mode", "keyword", "--json").out
    run("verify")
    storage = open_storage(bucket)
    assert [entry.name for entry in storage.entries("links")] == ["documents.jsonl"]
    assert not (tmp_path / "chunks").exists()


def test_sync_without_changes_lists_the_bucket_once_and_reads_nothing(
    bucket: str, s3_server: S3Server, tmp_path: Path
) -> None:
    root = BusRoot.at(bucket, tmp_path / "writer")
    for number in range(3):
        commit(root, f"p{number}", source(f"{number}.md", "one", "two"))
    with Proxy(s3_server.url) as proxy:
        variables = s3_server.variables(proxy.url) | {"CHUNKSINK_CHUNKS": bucket, "CHUNKSINK_SINKS": "fts"}
        assert chunksink(tmp_path, "sync", **variables).code == Exit.OK
        proxy.heal()
        assert chunksink(tmp_path, "sync", **variables).code == Exit.OK
        assert [line for line in proxy.requests if "list-type=2" not in line] == []
        assert len(proxy.requests) == 3  # whether it is there, and both folders
        assert chunksink(tmp_path, "doctor", **variables).code == Exit.OK
        assert chunksink(tmp_path, "status", **variables).code == Exit.OK
        commit(root, "p1", source("1.md", "three", version="2"))
        proxy.heal()
        assert chunksink(tmp_path, "sync", **variables).code == Exit.OK
        assert {line.partition("/manifest/")[2][:2] for line in proxy.requests if "/manifest/" in line} == {"p1"}


def test_ingest_without_changes_reads_each_manifest_once(bucket: str, s3_server: S3Server, tmp_path: Path) -> None:
    for name in ("a.md", "b.html"):
        (tmp_path / name).write_text("<h1>A</h1>\n\nText.\n", encoding="utf-8")
    with Proxy(s3_server.url) as proxy:
        variables = s3_server.variables(proxy.url) | {"CHUNKSINK_CHUNKS": bucket}
        arguments = ("ingest", "a.md", "b.html", "--partition", "by-type")
        assert chunksink(tmp_path, *arguments, **variables).code == Exit.OK
        proxy.heal()
        assert chunksink(tmp_path, *arguments, **variables).code == Exit.OK
        read = [line.split()[1].rpartition("/")[2] for line in proxy.requests if "list-type=2" not in line]
        assert sorted(read) == ["html.manifest.json", "md.manifest.json", "roots.json"]


@pytest.mark.parametrize(
    "variables", [{"CHUNKSINK_CHUNKS": "s3://id:secret@tests/a"}, {"CHUNKSINK_HOME": "s3://tests/home"}]
)
def test_address_that_cannot_be_used_is_a_usage_error(variables: dict[str, str], tmp_path: Path) -> None:
    ended = chunksink(tmp_path, "sync", **variables)
    assert ended.code == Exit.USAGE
    assert "secret" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("command", "code"), [("sync", Exit.USAGE), ("plan", Exit.USAGE), ("doctor", Exit.ENGINE)], ids=str
)
def test_endpoint_that_is_no_url_is_named(command: str, code: Exit, tmp_path: Path) -> None:
    credentials = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"}
    variables = credentials | {"CHUNKSINK_CHUNKS": "s3://tests/a", "AWS_ENDPOINT_URL": "localhost:9000"}
    ended = chunksink(tmp_path, "--log-format", "json", command, **variables)
    assert ended.code == code
    assert "AWS_ENDPOINT_URL" in ended.out + ended.err
    for line in ended.err.splitlines():
        json.loads(line)


def test_ingest_when_the_old_chunks_are_damaged_names_the_remedy(
    bucket: str, s3_server: S3Server, tmp_path: Path
) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("# A\n\nText.\n", encoding="utf-8")
    variables = s3_server.variables() | {"CHUNKSINK_CHUNKS": bucket}
    assert chunksink(tmp_path, "ingest", "a.md", "b.md", **variables).code == Exit.OK
    root = BusRoot.at(bucket, tmp_path)
    [chunks] = root.storage.entries("canonical")
    root.storage.write(f"canonical/{chunks.name}", b"damaged\n")
    (tmp_path / "a.md").write_text("# A\n\nAnother text.\n", encoding="utf-8")
    ended = chunksink(tmp_path, "ingest", "a.md", "b.md", **variables)
    assert ended.code == Exit.INVALID_INPUT
    assert "`chunksink validate`" in ended.err
    [still] = root.storage.entries("canonical")
    assert still.name == chunks.name


@pytest.mark.parametrize("command", ["sync", "validate", "ingest"])
def test_denied_bucket_ends_the_run_and_changes_nothing(
    command: str, bucket: str, s3_server: S3Server, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("# A\n\nText.\n", encoding="utf-8")
    variables = s3_server.variables() | {"CHUNKSINK_CHUNKS": bucket, "AWS_SECRET_ACCESS_KEY": "wrong"}
    arguments = [command, "a.md"] if command == "ingest" else [command]
    assert chunksink(tmp_path, *arguments, **variables).code == Exit.ENGINE
    if command == "sync":  # the first one: it makes no home
        assert [file.name for file in tmp_path.iterdir()] == ["a.md"]


@pytest.mark.parametrize("command", ["sync", "sync --watch", "rebuild"])
def test_denied_bucket_of_an_index_is_a_failed_run(
    command: str, bucket: str, s3_server: S3Server, tmp_path: Path
) -> None:
    commit(BusRoot.at(bucket, tmp_path / "writer"), "p", source("a.md", "one"))
    variables = s3_server.variables() | {"CHUNKSINK_CHUNKS": bucket, "CHUNKSINK_SINKS": "fts"}
    assert chunksink(tmp_path, "sync", **variables).code == Exit.OK
    denied = variables | {"AWS_SECRET_ACCESS_KEY": "wrong"}
    assert chunksink(tmp_path, *command.split(), **denied).code == Exit.ENGINE
    [failed, first] = list(past_runs(tmp_path / ".chunksink"))
    assert (failed.command, failed.status, failed.error) == (command.split()[0], "failed", "StorageDenied")
    assert first.status == "ok"
    checked = chunksink(tmp_path, "status", "--check", "--json", **variables)
    assert [problem["code"] for problem in checked.json["problems"]] == ["run_failed"]
    # A wrong prefix is no failed run.
    assert chunksink(tmp_path, "sync", **variables | {"CHUNKSINK_CHUNKS": f"{bucket}x"}).code == Exit.INVALID_INPUT
    assert len(list(past_runs(tmp_path / ".chunksink"))) == 2


def test_bucket_whose_partitions_are_gone_is_held(bucket: str, s3_server: S3Server, tmp_path: Path) -> None:
    root = BusRoot.at(bucket, tmp_path / "writer")
    commit(root, "p", source("a.md", "one"))
    variables = s3_server.variables() | {"CHUNKSINK_CHUNKS": bucket, "CHUNKSINK_SINKS": "fts"}
    assert chunksink(tmp_path, "sync", **variables).code == Exit.OK
    for folder in ("canonical", "manifest"):
        for entry in root.storage.entries(folder):
            root.storage.remove(f"{folder}/{entry.name}")
    ended = chunksink(tmp_path, "sync", **variables)
    assert (ended.code, "--chunks DIR" in ended.err) == (Exit.INVALID_INPUT, False)
    root.storage.write("manifest/kept", b"")
    assert chunksink(tmp_path, "retire-partition", "p", **variables).code == Exit.OK


def test_watch_when_a_partition_is_committed_is_due(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = BusRoot.at(bucket, tmp_path)
    commit(root, "p", source("a.md", "one"))
    reports: list[str] = []
    watch = BusWatch(BusRoot.at(bucket, tmp_path), reports.append, sleep=lambda _seconds: None)
    assert (watch.is_due(), watch.is_due()) == (True, False)
    commit(root, "p", source("a.md", "two"))
    assert (watch.is_due(), watch.is_due()) == (True, False)

    def fails(*_: object) -> None:
        raise StorageError("unreachable")

    with monkeypatch.context() as patch:
        patch.setattr(type(root.storage), "entries", fails)
        assert (watch.is_due(), watch.is_due()) == (False, False)
    assert len(reports) == 1
    commit(root, "q", source("b.md", "three"))
    assert watch.is_due()


@pytest.mark.parametrize("existing", [True, False])
def test_folder_that_another_machine_registers_meanwhile_is_kept(existing: bool, bucket: str, tmp_path: Path) -> None:
    for name in ("a", "b", "c", "c/d"):
        (tmp_path / name).mkdir()
    root = BusRoot.at(bucket, tmp_path)
    if existing:
        roots = Roots(root)
        roots.register(tmp_path / "a")
        roots.save()
    mine, others, nested = Roots(root), Roots(root), Roots(root)
    mine.register(tmp_path / "b")
    others.register(tmp_path / "c")
    others.register(tmp_path / "b")
    nested.register(tmp_path / "c" / "d")
    others.save()
    mine.save()
    with pytest.raises(IngestBusy):
        nested.save()
    assert sorted(one.label for one in Roots(root)) == (["a", "b", "c"] if existing else ["b", "c"])


def test_first_ingests_of_several_folders_at_once_all_end(bucket: str, tmp_path: Path) -> None:
    together = Barrier(5, timeout=60)

    def first_ingest(name: str) -> int:
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("# A\n\nText.\n", encoding="utf-8")
        home = tmp_path / f"home-{name}"
        # `on_source` is called when all have read the list of folders and none has written it.
        report = ingest(
            [tmp_path / name],
            BusRoot.at(bucket, home),
            home,
            Options(partition=name),
            on_source=together.wait,
        )
        return report.documents

    names = [f"folder{number}" for number in range(together.parties)]
    with ThreadPoolExecutor(len(names)) as threads:
        assert list(threads.map(first_ingest, names)) == [1] * len(names)
    root = BusRoot.at(bucket, tmp_path)
    assert sorted(one.label for one in Roots(root)) == names == root.partition_keys()


def test_forget_removes_the_copies_of_partitions(bucket: str, s3_server: S3Server, tmp_path: Path) -> None:
    root = BusRoot.at(bucket, tmp_path / "writer")
    commit(root, "p", source("a.md", "a quokka"))
    variables = s3_server.variables() | {"CHUNKSINK_CHUNKS": bucket, "CHUNKSINK_SINKS": "fts"}
    assert chunksink(tmp_path, "sync", **variables).code == Exit.OK
    assert list((tmp_path / ".chunksink" / "partitions").iterdir()) != []
    commit(root, "p", [])
    assert chunksink(tmp_path, "forget", "a.md", **variables).code == Exit.OK
    for file in (tmp_path / ".chunksink").rglob("*"):
        assert not file.is_file() or b"quokka" not in file.read_bytes()


def test_forget_without_an_index_removes_the_copies_of_partitions(
    bucket: str, s3_server: S3Server, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("# A\n\nA quokka.\n", encoding="utf-8")
    variables = s3_server.variables() | {"CHUNKSINK_CHUNKS": bucket}
    assert chunksink(tmp_path, "ingest", "a.md", **variables).code == Exit.OK
    copies = tmp_path / ".chunksink" / "partitions"
    assert list(copies.iterdir()) != []
    for removed in ("copies of chunks", "sync"):  # the second time there is nothing to remove
        ended = chunksink(tmp_path, "forget", "a.md", **variables)
        assert (ended.code, removed in ended.err, list(copies.iterdir())) == (Exit.USAGE, True, [])
        assert f"no index in {tmp_path / '.chunksink'}" in ended.err


def test_erased_source_is_gone_from_the_bucket_after_its_earlier_versions_are_deleted(
    bucket: str, s3_server: S3Server, tmp_path: Path
) -> None:
    """The steps of docs/object-storage.md."""
    (tmp_path / "notes").mkdir()
    for name, text in (("a.md", "A quokka."), ("b.md", "A boat.")):
        (tmp_path / "notes" / name).write_text(f"# A\n\n{text}\n", encoding="utf-8")
    variables = s3_server.variables() | {"CHUNKSINK_CHUNKS": bucket, "CHUNKSINK_SINKS": "fts"}
    assert chunksink(tmp_path, "ingest", "notes", "--sync", **variables).code == Exit.OK
    (tmp_path / "notes" / "a.md").unlink()
    assert chunksink(tmp_path, "ingest", "notes", "--prune", "--sync", **variables).code == Exit.OK
    forgotten = chunksink(tmp_path, "forget", "notes/a.md", "--json", **variables)
    assert forgotten.code == Exit.OK
    assert "canonical/KEY.SHA256.jsonl" in forgotten.json["out_of_reach"]
    storage = open_storage(bucket)
    named = {
        json.loads(storage.read(f"manifest/{entry.name}"))["checksums"]["chunks_file"].removeprefix("sha256:")
        for entry in storage.entries("manifest")
    }
    earlier = [entry.name for entry in storage.entries("canonical") if entry.name.split(".")[-2] not in named]
    assert earlier != []
    for name in earlier:
        storage.remove(f"canonical/{name}")
    for folder in ("canonical", "manifest", "links"):
        for entry in storage.entries(folder):
            assert b"quokka" not in storage.read(f"{folder}/{entry.name}")
    for command in ("validate", "sync", "verify"):
        assert chunksink(tmp_path, command, **variables).code == Exit.OK
