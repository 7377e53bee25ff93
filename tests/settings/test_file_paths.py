"""A configuration may be used from any folder: what it names lies where it lies."""

from hashlib import sha256
from pathlib import Path

import pytest

from chunksink.settings.config import ConfigError, load_config
from chunksink.settings.file_paths import shipped_settings_file

FILE = """
chunks = "bus"
model = "own-model"
sinks = ["fts", "chroma", "meilisearch"]
[sink.fts]
folder = "keywords"
[sink.chroma]
folder = "/var/vectors"
[sink.meilisearch]
settings_file = "own.json"
[index.books]
model = "hub/name"
[index.books.sink.fts]
folder = "of-books"
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a configuration; the current one is another."""
    folder, here = tmp_path / "project", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    return folder


def test_every_path_of_a_file_is_taken_from_its_folder(elsewhere: Path) -> None:
    (elsewhere / "chunksink.toml").write_text(FILE)
    (elsewhere / "own-model").mkdir()
    config = load_config({}, {}, elsewhere)
    assert (config.chunks, config.home) == (str(elsewhere / "bus"), str(elsewhere / ".chunksink"))
    assert config.model == str(elsewhere / "own-model")
    assert config.sink["fts"] == {"folder": str(elsewhere / "keywords")}
    assert config.sink["chroma"] == {"folder": "/var/vectors"}
    assert config.sink["meilisearch"] == {"settings_file": str(elsewhere / "own.json")}
    books = load_config({"index": "books"}, {}, elsewhere)
    assert (books.home, books.model) == (str(elsewhere / ".chunksink/books"), "hub/name")
    assert books.sink["fts"] == {"folder": str(elsewhere / "of-books")}
    Path("chunksink.toml").write_text(FILE)
    here = load_config({}, {})
    assert (here.chunks, here.home, here.sink["fts"]) == ("bus", ".chunksink", {"folder": "keywords"})


def test_the_index_settings_beside_a_file_are_those_of_its_meilisearch(elsewhere: Path) -> None:
    (elsewhere / "chunksink.toml").write_text('sinks = ["meilisearch"]')
    beside = elsewhere / "meilisearch-settings.json"
    Path("meilisearch-settings.json").write_text("{}")  # of the current folder, which is not asked
    shipped = {"meilisearch": {"settings_file": str(shipped_settings_file())}}
    assert load_config({}, {}, elsewhere).sink == shipped
    beside.write_text("{}")
    assert load_config({}, {}, elsewhere).sink == {"meilisearch": {"settings_file": str(beside)}}
    assert load_config({"sinks": ["fts"]}, {}, elsewhere).sink == {}
    said = {"CHUNKSINK_SINK_MEILISEARCH_SETTINGS_FILE": "mine.json"}
    assert load_config({}, said, elsewhere).sink["meilisearch"] == {"settings_file": "mine.json"}


def test_the_users_own_folder_is_meant_whoever_names_it(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/own")
    file = 'chunks = "~/bus"\nmodel = "~/model"\nsinks = ["fts", "chroma"]\n[sink.fts]\nfolder = "~/keywords"\n'
    (elsewhere / "chunksink.toml").write_text(file)
    said = {"CHUNKSINK_HOME": "~/home", "CHUNKSINK_SINK_CHROMA_FOLDER": "~"}
    config = load_config({}, said, elsewhere)
    assert (config.chunks, config.home, config.model) == ("/home/own/bus", "/home/own/home", "/home/own/model")
    assert config.sink == {"fts": {"folder": "/home/own/keywords"}, "chroma": {"folder": "/home/own"}}
    assert load_config({"home": Path("~/flag")}, {}).home == "/home/own/flag"
    monkeypatch.setenv("HOME", str(elsewhere))
    assert load_config({}, {"CHUNKSINK_CONFIG": "~/chunksink.toml"}).chunks == str(elsewhere / "bus")


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ('home = "chunks/canonical/home"', "home: .*home lies in .*chunks/canonical, where nothing but chunks may lie"),
        ('sinks = ["jsonl"]\n[sink.jsonl]\nfolder = "chunks/manifest"', r"folder of \[sink\.jsonl\]: .* lies in"),
    ],
)
def test_nothing_of_ours_lies_among_the_chunks(file: str, told: str, elsewhere: Path) -> None:
    (elsewhere / "chunksink.toml").write_text(file)
    with pytest.raises(ConfigError, match=told):
        load_config({}, {}, elsewhere)
    (elsewhere / "chunksink.toml").write_text('home = "chunks/home"')
    assert load_config({}, {}, elsewhere).home == str(elsewhere / "chunks/home")


def test_a_variable_names_the_file_and_what_is_said_in_the_call_wins(elsewhere: Path) -> None:
    file = elsewhere / "settings.toml"
    file.write_text('tenants = "required"')
    environment = {"CHUNKSINK_CONFIG": str(file)}
    assert load_config({}, environment).tenants == "required"
    assert load_config({}, {"CHUNKSINK_CONFIG": ""}).tenants == "optional"
    other = elsewhere / "other"
    other.mkdir()
    assert load_config({}, environment, other).tenants == "optional"
    file.unlink()
    with pytest.raises(ConfigError, match=r"there is no configuration at .*settings\.toml"):
        load_config({}, environment)


def test_a_variable_reaches_a_sink_of_several_words(elsewhere: Path) -> None:
    variables = {"CHUNKSINK_SINK_MY_SINK_BATCH_SIZE": "5", "CHUNKSINK_SINK_FTS_FOLDER": "x"}
    asked_for = load_config({"sinks": ("my-sink",)}, variables | {"CHUNKSINK_SINKS": "my-sink,fts"})
    assert asked_for.sink == {"my-sink": {"batch_size": "5"}, "fts": {"folder": "x"}}
    (elsewhere / "chunksink.toml").write_text('sinks = ["my_sink"]\n[sink.my_sink]\nbatch_size = 1\n')
    assert load_config({}, variables, elsewhere).sink["my_sink"] == {"batch_size": "5"}


@pytest.mark.promise(12)
@pytest.mark.parametrize(
    ("hashed", "told"), [(sha256(b"").hexdigest(), "of nothing"), ("my-own-token", "for 'acme' not the sha256")]
)
def test_what_is_not_the_hash_of_a_token_is_refused(hashed: str, told: str, elsewhere: Path) -> None:
    (elsewhere / "chunksink.toml").write_text(f'[tokens]\n"{hashed}" = "acme"\n')
    with pytest.raises(ConfigError, match=rf"chunksink\.toml: `tokens` has .*{told}"):
        load_config({}, {}, elsewhere)
    with pytest.raises(ConfigError, match=told) as caught:
        load_config({}, {"CHUNKSINK_TOKENS": f"{hashed}=acme"})
    assert hashed not in str(caught.value)
