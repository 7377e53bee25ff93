"""Sinks by name: built-in ones, those of other packages, and unknown names and options."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.settings.errors import ConfigError
from chunksink.settings.sink_tables import sink_names
from chunksink.sinks.chroma import ChromaSink
from chunksink.sinks.errors import Unreachable
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.jsonl import JsonlSink
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.registry import open_sink


def test_built_in_sinks_are_ordinary_entry_points(tmp_path: Path) -> None:
    kinds = {"chroma": ChromaSink, "fts": FtsSink, "jsonl": JsonlSink, "meilisearch": MeilisearchSink}
    assert set(sink_names()) >= set(kinds)
    for name, kind in kinds.items():
        sink = open_sink(name, tmp_path, {})
        assert isinstance(sink, kind)
        assert sink.name == name
        sink.close()
    assert list(tmp_path.iterdir()) == [], "an engine is asked nothing before it is used"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("nope", {}, "Installed: chroma, fts"),
        ("fts", {"foldr": "x"}, "Known options: folder"),
        ("meilisearch", {"vectors": "perhaps"}, "vectors"),
        ("meilisearch", {"index": "a b"}, "index"),
        ("meilisearch", {"settings_file": "/nowhere/at/all.json"}, "/nowhere/at/all.json"),
        ("chroma", {"url": "http://x", "folder": "y"}, "not both"),
        ("chroma", {"url": "http://x", "token_variable": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE"),
        ("jsonl", {"folder": 3}, "folder"),
    ],
)
def test_sink_that_cannot_be_opened_states_why(
    name: str, options: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        open_sink(name, tmp_path, options)


# --- sinks of other packages ----------------------------------------------------------------------------------

Install = Callable[[str, str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package of one module that provides a sink with this name, as pip would."""

    def install(package: str, sink: str, code: str) -> Path:
        site = tmp_path / package
        site.mkdir()
        monkeypatch.syspath_prepend(site)
        module = site / f"{package}.py"
        module.write_text(code)
        metadata = site / f"{package}-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (metadata / "entry_points.txt").write_text(f"[chunksink.sinks]\n{sink} = {package}:open_sink\n")
        monkeypatch.delitem(sys.modules, package, raising=False)
        return module

    return install


NAMED = "from tests.support.memory_sink import MemorySink\nclass Named(MemorySink):\n    name = {!r}\n"
OPENING = "def open_sink(home, options):\n    {}\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("return options.folder", "AttributeError: 'dict' object has no attribute 'folder'"),
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("open('/nowhere/at/all')", "FileNotFoundError: "),
    ],
)
def test_error_while_opening_is_reported_with_its_line(
    install: Install, tmp_path: Path, code: str, message: str
) -> None:
    module = install("opening_mine", "mine", OPENING.format(code))
    with pytest.raises(ConfigError) as failed:
        open_sink("mine", tmp_path, {})
    assert str(failed.value).startswith(f"the sink mine cannot be opened: {message}")
    assert str(failed.value).endswith(f"({module}:2)")


def test_sink_of_another_package_is_opened(install: Install, tmp_path: Path) -> None:
    install(
        "paper",
        "paper",
        NAMED.format("paper") + OPENING.format("return Named(**options)"),
    )
    assert "paper" in sink_names()
    assert open_sink("paper", tmp_path, {"wants_vectors": False}).wants_vectors is False


@pytest.mark.parametrize("name", ["other", "fts"])
def test_sink_with_another_name_than_its_entry_point_is_refused(install: Install, tmp_path: Path, name: str) -> None:
    install(f"misnamed_{name}", "mine", NAMED.format(name) + OPENING.format("return Named()"))
    with pytest.raises(ConfigError, match=rf"'{name}'.* misnamed_{name} "):
        open_sink("mine", tmp_path, {})


def test_sink_that_lacks_methods_is_refused(install: Install, tmp_path: Path) -> None:
    code = "class Half:\n    name = 'mine'\n    def create(self, marker, dimensions=None): ...\n"
    install("half_a_sink", "mine", code + OPENING.format("return Half()"))
    with pytest.raises(ConfigError, match=r"lacks wants_vectors, open, builds, flip, drop, close: .* half_a_sink "):
        open_sink("mine", tmp_path, {})


def test_module_that_fails_is_reported_with_its_line(install: Install, tmp_path: Path) -> None:
    module = install("loading_mine", "mine", "\n1 / 0\n")
    with pytest.raises(ConfigError) as failed:
        open_sink("mine", tmp_path, {})
    assert str(failed.value).startswith("the sink mine cannot be loaded: ")
    assert str(failed.value).endswith(f"({module}:2)")


def test_known_errors_are_passed_on(install: Install, tmp_path: Path) -> None:
    install(
        "known_mine",
        "mine",
        "from chunksink.sinks.errors import Unreachable\n" + OPENING.format("raise Unreachable('gone')"),
    )
    with pytest.raises(Unreachable, match=r"^gone$"):
        open_sink("mine", tmp_path, {})
    install(
        "known_too",
        "too",
        "from chunksink.settings.errors import ConfigError\n" + OPENING.format("raise ConfigError('x')"),
    )
    with pytest.raises(ConfigError, match=r"^x$"):
        open_sink("too", tmp_path, {})


def test_built_in_names_cannot_be_taken(install: Install, tmp_path: Path) -> None:
    install("a_taker", "fts", OPENING.format("raise RuntimeError('taken')"))
    sink = open_sink("fts", tmp_path, {})
    assert isinstance(sink, FtsSink)
    sink.close()


def test_two_packages_with_one_name_are_both_named(install: Install, tmp_path: Path) -> None:
    install("scissors", "mine", OPENING.format("return None"))
    install("paper", "mine", OPENING.format("return None"))
    with pytest.raises(ConfigError, match="several packages have a sink mine: paper, scissors"):
        open_sink("mine", tmp_path, {})
