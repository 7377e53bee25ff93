"""Names stay inside the bus root, and two names never become one."""

import itertools
import os
import random
import unicodedata
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chunksink.chunkbus import findings
from chunksink.chunkbus.errors import InvalidPartitionKey, NotABusRoot
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.identity import family_key, normalise_source, resolve_parent_id, tenant_key
from chunksink.chunkbus.layout import is_partition_key
from chunksink.chunkbus.reader import read_manifest
from chunksink.chunkbus.writer import PartitionWriter
from tests.chunkbus.samples import chunk, codes, commit, listing, places, put, put_manifest, validate
from tests.conftest import examples

BAD_KEYS = [
    "",
    ".",
    "..",
    "../evil",
    "..\\evil",
    "a/b",
    "a/../../evil",
    "/etc/evil",
    "C:\\evil",
    "a\\b",
    ".hidden",
    "-dash",
    "_low",
    "a\0b",
    "a\n",
    "a b",
    "a:b",
    "a*",
    "~root",
    "x" * 129,
    "x" * 300,
    "märz",
    "ma\u0308rz",
    "日本",
    "１",  # a digit, but not an ASCII one
    "a\u202eb",
    "%2e%2e",
]
GOOD_KEYS = ["a", "0", "A.b-c_d", "2026-01-31", "x" * 128, "a..b", "CON", "a.jsonl", "a.manifest.json"]


@pytest.mark.parametrize("key", BAD_KEYS, ids=ascii)
def test_partition_key_when_bad_opens_and_writes_nothing(key: str, tmp_path: Path) -> None:
    root = FolderRoot(tmp_path / "outer" / "bus")
    commit(root, "good", [chunk()])
    before = listing(tmp_path)
    for use in (root.chunks_file, root.manifest_file, lambda key: root.waiting_file(key, "0" * 64)):
        with pytest.raises(InvalidPartitionKey):
            use(key)
    for touch in (PartitionWriter, read_manifest, FolderRoot.open):
        with pytest.raises(InvalidPartitionKey):
            touch(root, key)
    with pytest.raises(InvalidPartitionKey):
        validate(root, [key])
    assert not is_partition_key(key)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("key", GOOD_KEYS)
def test_partition_key_when_good_can_be_written_and_read(key: str, tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    commit(root, key, [chunk()])
    assert root.partition_keys() == [key]
    assert root.misnamed_files() == []
    assert validate(root) == []


def test_partition_keys_when_one_contains_another_are_separate(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    keys = ["a", "a.b", "a.b.c", "A", "a.lock", "a.new", "a." + "0" * 64, "a." + "0" * 16]
    for index, key in enumerate(keys):
        commit(root, key, [chunk(index, uri=f"docs/{index}.md")])
        # Files of other writers stay.
        (root.canonical / f".{key}.{'1' * 64}.jsonl").write_bytes(b"waiting")
        (root.manifests / f".{key}.manifest.json.{'1' * 16}.new").write_bytes(b"new")
    for index, key in enumerate(keys):
        commit(root, key, [chunk(index, uri=f"docs/{index}.md")])
        left = {path.name for path in [*root.canonical.iterdir(), *root.manifests.iterdir()] if "1" * 16 in path.name}
        mine = {f".{other}.{'1' * 64}.jsonl" for other in keys[index + 1 :]}
        assert left == mine | {f".{other}.manifest.json.{'1' * 16}.new" for other in keys[index + 1 :]}
    assert validate(root) == []
    assert sorted(root.partition_keys()) == sorted(keys)


def test_writer_keeps_hidden_files_of_other_programs(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    commit(root, "k", [chunk(0)])
    others = [".k.backup.jsonl", ".k.old.new", ".k.jsonl", f".k.{'0' * 63}.jsonl", f".k.{'G' * 64}.jsonl", ".DS_Store"]
    for name in others:
        (root.canonical / name).write_bytes(b"mine")
    commit(root, "k", [chunk(1)])
    assert all((root.canonical / name).read_bytes() == b"mine" for name in others)
    assert validate(root) == []


@pytest.mark.parametrize("folder", ["canonical", "manifest"])
def test_writer_when_the_folder_links_outside_is_refused(folder: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root = FolderRoot(tmp_path / "bus")
    root.path.mkdir()
    (root.path / folder).symlink_to(outside)
    with pytest.raises(NotABusRoot), PartitionWriter(root, "k"):
        pass
    assert list(outside.iterdir()) == []


def test_writer_when_the_root_is_a_link_writes(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    commit(FolderRoot(tmp_path / "link"), "k", [chunk()])
    assert validate(FolderRoot(tmp_path / "real")) == []


@pytest.mark.parametrize("name", ["canonical/k.jsonl", "manifest/k.manifest.json", "canonical/.k.lock"])
def test_writer_when_a_file_is_a_link_never_writes_through_it(name: str, tmp_path: Path) -> None:
    root = FolderRoot(tmp_path / "bus")
    commit(root, "k", [chunk(0)])
    outside = tmp_path / "precious"
    outside.write_bytes((root.path / name).read_bytes() or b"precious")
    kept = outside.read_bytes()
    (root.path / name).unlink()
    (root.path / name).symlink_to(outside)
    assert validate(root) == []
    try:
        commit(root, "k", [chunk(1)])
    except OSError:
        assert name.endswith(".lock")
    else:
        assert not (root.path / name).is_symlink() or name.endswith(".lock")
    assert outside.read_bytes() == kept


def test_misnamed_files_are_reported_with_printable_names(tmp_path: Path) -> None:
    root = put(FolderRoot(tmp_path), "good", b"")
    names = [
        b"two words.jsonl",
        b"m\xc3\xa4rz.jsonl",
        b"\xff.jsonl",
        b"line\nbreak.jsonl",
        b"\x1b[31m.jsonl",
        b"-x.jsonl",
    ]
    for name in names:
        (root.canonical / os.fsdecode(name)).touch()
    put_manifest(root, "x" * 129, b"{}")
    put_manifest(root, "y" * 124 + ".jsonl", b"{}")
    found = validate(root)
    assert codes(found) == [findings.PARTITION_KEY] * 8
    reported = {finding.partition for finding in found}
    assert {"canonical/two words.jsonl", "canonical/märz.jsonl", "canonical/\\udcff.jsonl"} <= reported
    assert {"canonical/line\\nbreak.jsonl", "canonical/\\x1b[31m.jsonl"} <= reported
    assert all(str(finding).isprintable() and str(finding).encode() for finding in found)
    assert places(validate(root, ["good"])) == []


def test_stray_files_are_reported_unless_hidden(tmp_path: Path) -> None:
    root = put(FolderRoot(tmp_path), "good", b"")
    for name in (
        "b.ndjson",
        "c.jsonl.gz",
        "d.jsonl~",
        "e.manifest.json",
        "README.md",
        "line\nbreak",
        ".keep",
        ".DS_Store",
    ):
        (root.canonical / name).touch()
    put(FolderRoot(root.canonical), "within", b"")
    for name in ("f.json", "g.jsonl", ".h.lock"):
        (root.manifests / name).touch()
    found = validate(root)
    assert places(found) == [
        (findings.PARTITION_KEY, "warning", name, None)
        for name in (
            *("canonical/README.md", "canonical/b.ndjson", "canonical/c.jsonl.gz", "canonical/canonical"),
            *("canonical/d.jsonl~", "canonical/e.manifest.json", "canonical/line\\nbreak", "canonical/manifest"),
            *("manifest/f.json", "manifest/g.jsonl"),
        )
    ]
    assert all("nothing reads this" in finding.detail for finding in found)
    assert root.partition_keys() == ["good"]
    assert root.misnamed_files() == []
    assert validate(root, ["good"]) == []


def distinct_names(count: int) -> list[str]:
    """Relative POSIX paths that differ in ways file systems keep apart: case, Unicode form, white space, signs."""
    chance = random.Random(3)
    letters = ["a", "A", "b", "é", "e\u0301", "Å", "\u212b", "ß", "ss", "ſ", "ı", "İ", "#", "?", "%", "%20", " ", "\t"]
    letters += ["\\", "&", "+", ";", ":", "@", "~", "日", "\u200b", "\u00a0", "'", '"', "1", "１", "..a", "a.", "%ff"]
    names: dict[str, None] = {}
    while len(names) < count:
        parts = ["".join(chance.choices(letters, k=chance.randint(1, 4))) for _ in range(chance.randint(1, 3))]
        name = "notes-" + "/".join(parts)  # one letter and a colon would be a drive, whose case is ignored
        names[name] = names[name.swapcase()] = None
        names[unicodedata.normalize("NFC", name)] = names[unicodedata.normalize("NFD", name)] = None
    return [name for name in names if not {".", ".."} & set(name.split("/"))]


def test_family_keys_of_many_names_differ() -> None:
    names = distinct_names(count := examples(100_000))
    assert len(names) >= count
    assert len({normalise_source(name) for name in names}) == len(names)
    assert len({resolve_parent_id(None, name, "d") for name in names}) == len(names)
    for name in names[::10]:
        absolute = "/" + name
        assert normalise_source("file://" + quote(absolute)) == normalise_source(absolute) == absolute


@given(st.text(min_size=1))
@example("//a//b")
@example("http://[")
@example("file:///%ff%fe")
@example("C:/")
def test_parent_id_exists_for_any_name(name: str) -> None:
    parent = resolve_parent_id(None, name, "d")
    assert len(parent) == 64
    assert int(parent, 16) >= 0


@given(st.lists(st.sampled_from(["a", "b", ".", "..", ""]), min_size=1).map("/".join).filter(bool))
def test_normalise_source_gives_one_spelling_for_a_path(path: str) -> None:
    spelling = normalise_source(path)
    assert normalise_source(spelling) == spelling
    assert normalise_source(path + ("." if path.endswith("/") else "/.")) == spelling
    assert path.startswith("/") or normalise_source("./" + path) == spelling
    steps = spelling.lstrip("/").split("/")
    while steps and steps[0] == ".." and spelling[0] != "/":
        steps.pop(0)
    assert not {".", "..", ""} & set(steps) or spelling in (".", "/", "//")
    assert spelling.startswith("/") is path.startswith("/")


def test_family_keys_of_tenants_differ() -> None:
    hexes = ["a" * 64, "b" * 64, "A" * 64, "a" * 63, "paper", 'x"],["y']
    tenants = [None, "a", "A", "null", "a" * 64, '","', "é", "e\u0301"]
    keys = {family_key(parent, tenant) for parent, tenant in itertools.product(hexes, tenants)}
    assert len(keys) == len(hexes) * len(tenants)
    assert all(len(key) == 64 and key == key.lower() for key in keys)
    assert len({tenant_key(tenant) for tenant in tenants}) == len(tenants)
