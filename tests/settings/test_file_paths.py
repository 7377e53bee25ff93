"""Paths in a configuration start at its folder, wherever the command runs."""

from hashlib import sha256
from pathlib import Path

import pytest

from chunksink.settings.errors import ConfigError
from chunksink.settings.file_paths import shipped_settings_file
from chunksink.settings.load import load_config
from chunksink.settings.rerank import RerankOptions

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
[ray]
segments = "shared"
[rerank]
model = "own-reranker"
[index.books]
model = "hub/name"
[index.books.sink.fts]
folder = "of-books"
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a configuration, which is not the current one."""
    folder, here = tmp_path / "project", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    return folder


def test_paths_in_a_file_start_at_its_folder(elsewhere: Path) -> None:
    (elsewhere / "chunksink.toml").write_text(FILE)
    (elsewhere / "own-model").mkdir()
    (elsewhere / "own-reranker").mkdir()
    config = load_config({}, {}, elsewhere)
    assert (config.chunks, config.home) == (str(elsewhere / "bus"), str(elsewhere / ".chunksink"))
    assert config.model == str(elsewhere / "own-model")
    assert config.sink["fts"] == {"folder": str(elsewhere / "keywords")}
    assert config.sink["chroma"] == {"folder": "/var/vectors"}
    assert config.sink["meilisearch"] == {"settings_file": str(elsewhere / "own.json")}
    assert config.segments == str(elsewhere / "shared")
    assert config.rerank == RerankOptions(model=str(elsewhere / "own-reranker"))
    books = load_config({"index": "books"}, {}, elsewhere)
    assert (books.home, books.model) == (str(elsewhere / ".chunksink/books"), "hub/name")
    assert books.sink["fts"] == {"folder": str(elsewhere / "of-books")}
    Path("chunksink.toml").write_text(FILE)
    here = load_config({}, {})
    assert (here.chunks, here.home, here.sink["fts"]) == ("bus", ".chunksink", {"folder": "keywords"})


def test_index_settings_when_beside_the_file_are_used(elsewhere: Path) -> None:
    (elsewhere / "chunksink.toml").write_text('sinks = ["meilisearch"]')
    beside = elsewhere / "meilisearch-settings.json"
    Path("meilisearch-settings.json").write_text("{}")  # in the current folder, so not used
    shipped = {"meilisearch": {"settings_file": str(shipped_settings_file())}}
    assert load_config({}, {}, elsewhere).sink == shipped
    beside.write_text("{}")
    assert load_config({}, {}, elsewhere).sink == {"meilisearch": {"settings_file": str(beside)}}
    assert load_config({"sinks": ["fts"]}, {}, elsewhere).sink == {}
    variables = {"CHUNKSINK_SINK_MEILISEARCH_SETTINGS_FILE": "mine.json"}
    assert load_config({}, variables, elsewhere).sink["meilisearch"] == {"settings_file": "mine.json"}


def test_tilde_when_in_file_variable_or_flag_is_the_users_home(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/own")
    file = 'chunks = "~/bus"\nmodel = "~/model"\nsinks = ["fts", "chroma"]\n[sink.fts]\nfolder = "~/keywords"\n'
    (elsewhere / "chunksink.toml").write_text(file)
    variables = {"CHUNKSINK_HOME": "~/home", "CHUNKSINK_SINK_CHROMA_FOLDER": "~"}
    config = load_config({}, variables, elsewhere)
    assert (config.chunks, config.home, config.model) == ("/home/own/bus", "/home/own/home", "/home/own/model")
    assert config.sink == {"fts": {"folder": "/home/own/keywords"}, "chroma": {"folder": "/home/own"}}
    assert load_config({"home": Path("~/flag")}, {}).home == "/home/own/flag"
    monkeypatch.setenv("HOME", str(elsewhere))
    assert load_config({}, {"CHUNKSINK_CONFIG": "~/chunksink.toml"}).chunks == str(elsewhere / "bus")


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ('home = "chunks/canonical/home"', r"chunksink\.toml: home: .*chunks/canonical"),
        ('home = "chunks/links"', r"chunksink\.toml: home: .*chunks/links"),
        ('home = "chunks/../chunks"', r"chunksink\.toml: home: .*chunks is the folder of the chunks"),
        ('sinks = ["jsonl"]\n[sink.jsonl]\nfolder = "chunks/manifest"', r"folder of \[sink\.jsonl\]: "),
    ],
)
def test_folder_when_inside_the_chunks_is_refused(file: str, what: str, elsewhere: Path) -> None:
    (elsewhere / "chunksink.toml").write_text(file)
    with pytest.raises(ConfigError, match=what):
        load_config({}, {}, elsewhere)
    (elsewhere / "chunksink.toml").write_text('home = "chunks/home"')
    assert load_config({}, {}, elsewhere).home == str(elsewhere / "chunks/home")


def test_configuration_when_named_by_variable_and_call_is_the_calls(elsewhere: Path) -> None:
    file = elsewhere / "settings.toml"
    file.write_text('tenants = "required"')
    environment = {"CHUNKSINK_CONFIG": str(file)}
    assert load_config({}, environment).tenants == "required"
    assert load_config({}, {"CHUNKSINK_CONFIG": ""}).tenants == "optional"
    other = elsewhere / "other"
    other.mkdir()
    assert load_config({}, environment, other).tenants == "optional"
    file.unlink()
    with pytest.raises(ConfigError, match=r"settings\.toml"):
        load_config({}, environment)


def test_sink_variable_when_the_sinks_name_has_several_words_sets_its_option(elsewhere: Path) -> None:
    variables = {"CHUNKSINK_SINK_MY_SINK_BATCH_SIZE": "5", "CHUNKSINK_SINK_FTS_FOLDER": "x"}
    config = load_config({"sinks": ("my-sink",)}, variables | {"CHUNKSINK_SINKS": "my-sink,fts"})
    assert config.sink == {"my-sink": {"batch_size": "5"}, "fts": {"folder": "x"}}
    (elsewhere / "chunksink.toml").write_text('sinks = ["my_sink"]\n[sink.my_sink]\nbatch_size = 1\n')
    assert load_config({}, variables, elsewhere).sink["my_sink"] == {"batch_size": "5"}


@pytest.mark.promise(12)
@pytest.mark.parametrize("digest", [sha256(b"").hexdigest(), "my-own-token"], ids=["of an empty text", "not a digest"])
def test_token_when_not_a_usable_digest_is_refused_without_showing_it(digest: str, elsewhere: Path) -> None:
    (elsewhere / "chunksink.toml").write_text(f'[tokens]\n"{digest}" = "acme"\n')
    with pytest.raises(ConfigError, match=r"chunksink\.toml: `tokens`"):
        load_config({}, {}, elsewhere)
    with pytest.raises(ConfigError, match=r"^CHUNKSINK_TOKENS: `tokens`") as caught:
        load_config({}, {"CHUNKSINK_TOKENS": f"{digest}=acme"})
    assert digest not in str(caught.value)


@pytest.mark.promise(12)
def test_token_in_the_place_of_the_tenant_is_not_shown() -> None:
    with pytest.raises(ConfigError, match="entry 2") as caught:
        load_config({}, {"CHUNKSINK_TOKENS": f"{sha256(b'x').hexdigest()}=acme,beta=my-own-token"})
    assert "my-own-token" not in str(caught.value)
