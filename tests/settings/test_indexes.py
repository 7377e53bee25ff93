"""Several indexes in one file, Meilisearch by its variable, and which source of a setting wins."""

from pathlib import Path
from typing import Any

import pytest

from chunksink.settings.config import Config, variable
from chunksink.settings.errors import ConfigError
from chunksink.settings.load import load_config

SHARED = """\
model = "shared"
precision = "float32"
[sink.meilisearch]
url = "http://shared:1"
patience = 5.0
[index.books]
chunks = "books"
model = "of-books"
[index.books.sink.meilisearch]
patience = 9.0
[index.notes]
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project's root contains index settings, which commands there would use."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))


def load(tmp_path: Path, toml: str = "", env: dict[str, str] | None = None, **flags: object) -> Config:
    file = tmp_path / "chunksink.toml"
    file.write_text(toml)
    return load_config(flags, env or {}, file.parent)


def test_index_table_overrides_shared_settings(tmp_path: Path) -> None:
    books = load(tmp_path, SHARED, index="books")
    assert (books.model, books.precision) == ("of-books", "float32")
    assert books.bus.path == tmp_path / "books"
    assert (books.sink["meilisearch"]["url"], books.sink["meilisearch"]["patience"]) == ("http://shared:1", 9.0)
    notes = load(tmp_path, SHARED, {"CHUNKSINK_INDEX": "notes"})
    assert (notes.model, notes.bus.path) == ("shared", tmp_path / "chunks")
    assert notes.sink["meilisearch"]["patience"] == 5.0


def test_index_when_chosen_by_flag_and_variable_is_the_flags(tmp_path: Path) -> None:
    env = {"CHUNKSINK_INDEX": "notes"}
    assert load(tmp_path, SHARED, env, index="books").model == "of-books"
    assert load(tmp_path, SHARED, env, index=None).model == "shared"
    config = load(tmp_path, SHARED, {"CHUNKSINK_INDEX": ""})
    assert (config.model, config.home_path) == ("shared", tmp_path / ".chunksink")
    assert config.sink == {"meilisearch": {"url": "http://shared:1", "patience": 5.0}}


def test_homes_and_engine_names_when_defaults_differ_for_each_index(tmp_path: Path) -> None:
    for name in ("books", "notes"):
        config = load(tmp_path, SHARED, index=name)
        assert config.home_path == tmp_path / ".chunksink" / name
        assert config.sink["meilisearch"]["index"] == f"chunks-{name}"
        assert config.sink["chroma"]["prefix"] == f"chunksink-{name}"


def test_shared_folders_and_names_differ_for_each_index(tmp_path: Path) -> None:
    toml = """\
home = "/data"
[sink.meilisearch]
index = "library"
[sink.fts]
folder = "/fast/fts"
[sink.chroma]
prefix = "library"
[index.books]
"""
    books = load(tmp_path, toml, index="books")
    assert books.home == "/data/books"
    assert books.sink == {
        "meilisearch": {"index": "library-books"},
        "fts": {"folder": "/fast/fts/books"},
        "chroma": {"prefix": "library-books"},
        "postgres": {"schema": "chunksink-books"},
    }


def test_index_table_when_it_sets_folders_and_names_keeps_them(tmp_path: Path) -> None:
    toml = '[index.books]\nhome = "own"\n[index.books.sink]\nmeilisearch = {index = "books"}\nfts = {folder = "f"}\n'
    books = load(tmp_path, toml, index="books")
    assert books.home_path == tmp_path / "own"
    assert (books.sink["meilisearch"], books.sink["fts"]) == ({"index": "books"}, {"folder": str(tmp_path / "f")})


def test_sink_variables_apply_to_all_indexes(tmp_path: Path) -> None:
    names = {"MEILISEARCH_INDEX": "x", "CHROMA_PREFIX": "p", "CHROMA_FOLDER": "/c", "FTS_FOLDER": "/f"}
    variables = {f"CHUNKSINK_SINK_{name}": value for name, value in names.items()}
    toml = "[index.books.sink]\nmeilisearch = {index = 'own', url = 'u'}\n[index.notes]\n"
    books, notes = (load(tmp_path, toml, variables, index=name).sink for name in ("books", "notes"))
    assert books == {
        "meilisearch": {"index": "x-books", "url": "u"},
        "chroma": {"prefix": "p-books", "folder": "/c/books"},
        "fts": {"folder": "/f/books"},
        "postgres": {"schema": "chunksink-books"},
    }
    assert [notes["meilisearch"]["index"], notes["fts"]["folder"]] == ["x-notes", "/f/notes"]
    assert load(tmp_path, "", variables).sink["meilisearch"] == {"index": "x"}


def test_home_when_set_by_flag_or_variable_differs_for_each_index(tmp_path: Path) -> None:
    for toml in (SHARED, '[index.books]\nhome = "own"\n[index.notes]\n'):
        for name in ("books", "notes"):
            assert load(tmp_path, toml, index=name, home="flag").home == f"flag/{name}"
            assert load(tmp_path, toml, {"CHUNKSINK_HOME": "there"}, index=name).home == f"there/{name}"
    assert load(tmp_path, SHARED, home="flag").home == "flag"


@pytest.mark.parametrize(
    ("toml", "index", "what"),
    [
        (SHARED, "films", r"\[index.films\].*: books, notes"),
        ('[index."a/b"]', "a/b", "'a/b'"),
        ("[index.books]\nchunk = 'x'", None, r"^\[index.books\] of .*`chunk` \(did you mean chunks\?\)"),
        ("[index.books]\nindex = {}", "books", r"^\[index.books\] of .*`index`"),
        ("index = 3", None, r"`index` .*\[index.NAME\]"),
        ("[index]\nbooks = 3", "books", "`index`"),
        ("sink = 'fts'\n[index.books]", "books", r"`sink` .*\[sink.NAME\]"),
        ("[index.books]\nsink = 3", "books", "`sink`"),
        ("home = 3\n[index.books]", "books", r"`home`"),
        ("[index.a]\nhome = 'h'\n[index.b]\nhome = 'h'", "a", r"\[index.a\] and \[index.b\]"),
    ],
)
def test_index_table_when_unusable_is_refused(toml: str, index: str | None, what: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        load(tmp_path, toml, index=index)
    assert "chunksink.toml" in str(caught.value)


def test_meili_url_when_no_sinks_are_named_makes_meilisearch_the_keyword_sink(tmp_path: Path) -> None:
    env, default = {"MEILI_URL": "http://search:7700"}, ("fts", "chroma")
    config = load(tmp_path, "", env)
    assert (config.sinks, config.sink) == (("meilisearch", "chroma"), {"meilisearch": {"url": "http://search:7700"}})
    assert config.why_these_sinks is not None and "MEILI_URL is set" in config.why_these_sinks
    assert load(tmp_path, SHARED, env, index="books").sinks == ("meilisearch", "chroma")
    same = ("meilisearch", "chroma")
    for named, sinks in (
        (load(tmp_path), default),
        (load(tmp_path, "", {"MEILI_URL": ""}), default),
        (load(tmp_path, 'sinks = ["meilisearch", "chroma"]', env), same),
        (load(tmp_path, "", env | {"CHUNKSINK_SINKS": "meilisearch, chroma"}), same),
        (load(tmp_path, "", env, sinks=["fts"]), ("fts",)),
    ):
        assert (named.sinks, named.why_these_sinks) == (sinks, None)
    assert load(tmp_path).origin.has_default_sinks and config.origin.has_default_sinks
    assert not load(tmp_path, 'sinks = ["fts", "chroma"]').origin.has_default_sinks


def test_meili_url_overrides_the_file_but_not_our_own_variable(tmp_path: Path) -> None:
    toml, env = '[sink.meilisearch]\nurl = "http://file"\nvectors = false\n', {"MEILI_URL": "http://meili"}
    assert load(tmp_path, toml, env).sink["meilisearch"] == {"url": "http://meili", "vectors": False}
    own = env | {"CHUNKSINK_SINK_MEILISEARCH_URL": "http://own"}
    assert load(tmp_path, toml, own).sink["meilisearch"]["url"] == "http://own"
    flag = load(tmp_path, toml, own, sink={"meilisearch": {"url": "http://flag"}})
    assert flag.sink["meilisearch"] == {"url": "http://flag", "vectors": False}


# For a setting of each kind: its values in the file, the environment and a flag.
THREE: dict[str, tuple[Any, Any, Any]] = {
    "chunks": ("/f", "/e", "/g"),
    "home": ("/f", "/e", "/g"),
    "model": ("f", "e", "g"),
    "require_source_checksum": (True, False, True),
    "precision": ("float32", "bfloat16", "auto"),
    "max_length": (1, 2, 3),
    "fusion_weight": (0.25, 0.75, 0.0),
    "token_price": (1.5, 2.5, 0.0),
    "sinks": (("fts",), ("jsonl",), ("chroma", "fts")),
    "sink": ({"fts": {"folder": "/f"}}, {"fts": {"folder": "/e"}}, {"fts": {"folder": "/g"}}),
    "tokens": ({"a" * 64: "f"}, {"b" * 64: "e"}, {"c" * 64: "g"}),
}


def in_toml(name: str, value: Any) -> str:
    if name == "sink":
        return '[sink.fts]\nfolder = "/f"\n'
    if name == "tokens":
        return "tokens = { " + ", ".join(f'"{token}" = "{tenant}"' for token, tenant in value.items()) + " }\n"
    shown = str(value).lower() if isinstance(value, bool) else repr(list(value) if isinstance(value, tuple) else value)
    return f"{name} = {shown}\n"


def in_environment(name: str, value: Any) -> dict[str, str]:
    if name == "sink":
        return {"CHUNKSINK_SINK_FTS_FOLDER": "/e"}
    if name == "tokens":
        return {variable(name): ",".join(f"{token}={tenant}" for token, tenant in value.items())}
    return {variable(name): ",".join(value) if isinstance(value, tuple) else str(value).lower()}


@pytest.mark.parametrize("name", THREE)
def test_setting_when_set_several_times_is_the_flags_then_the_environments(name: str, tmp_path: Path) -> None:
    file, env, flag = THREE[name]
    toml, environment = in_toml(name, file), in_environment(name, env)
    assert getattr(load(tmp_path, toml), name) == file
    assert getattr(load(tmp_path, toml, environment), name) == env
    assert getattr(load(tmp_path, "", environment), name) == env
    assert getattr(load(tmp_path, toml, environment, **{name: flag}), name) == flag
    assert getattr(load(tmp_path, toml, **{name: flag}), name) == flag
    assert getattr(load(tmp_path, toml, environment, **{name: None}), name) == env
    own = f"[index.one]\n{in_toml(name, flag)}" if name != "sink" else '[index.one.sink.fts]\nfolder = "/g"\n'
    assert reads(load(tmp_path, f"{toml}{own}", index="one"), name) == flag
    separate = {"home": f"{env}/one", "sink": {"fts": {"folder": "/e/one"}}}
    assert reads(load(tmp_path, f"{toml}{own}", environment, index="one"), name) == separate.get(name, env)


def reads(config: Config, name: str) -> Any:
    value = getattr(config, name)
    return {"fts": value["fts"]} if name == "sink" else value


def test_configuration_when_named_must_exist(tmp_path: Path) -> None:
    (tmp_path / "chunksink.toml").write_text('home = "own"')
    for place in (tmp_path, str(tmp_path), tmp_path / "chunksink.toml"):
        assert load_config({}, place=place).home_path == tmp_path / "own"
    with pytest.raises(ConfigError, match=r"other\.toml"):
        load_config({}, place=tmp_path / "other.toml")
    (tmp_path / "books" / "chunksink.toml").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"books/chunksink\.toml"):
        load_config({}, place=tmp_path / "books")


def test_index_when_the_file_has_only_indexes_must_be_chosen(tmp_path: Path) -> None:
    """Otherwise a further index with default settings would be made beside them."""
    named = '[index.books]\nchunks = "books"\n[index.notes]\n'
    with pytest.raises(ConfigError, match=r"\(books, notes\).* --index"):
        load(tmp_path, named)
    assert load(tmp_path, named, index="notes").home.endswith(".chunksink/notes")
    assert load(tmp_path, f'model = "shared"\n{named}').model == "shared"
    assert load(tmp_path, "[index]\n").home.endswith(".chunksink")
