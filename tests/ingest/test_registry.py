"""All formats have one interface, also those of other packages, and ids that do not change."""

import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chunksink.ingest.codes import RECORD_FORM_UNKNOWN, SOURCE_EMPTY
from chunksink.ingest.errors import IngestRefused
from chunksink.ingest.formats import registry
from chunksink.ingest.formats.registry import NAMES, Format, all_formats
from chunksink.ingest.options import Options
from chunksink.ingest.run import ingest
from tests.conftest import ROOT
from tests.ingest.bench import Bench

PAGE = ROOT / "docs" / "writing-a-format.md"


@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_the_same_shape(name: str) -> None:
    one = all_formats()[name]
    assert isinstance(one, Format) and one.name == name
    assert one.suffixes and one.source_type
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in one.suffixes)
    for part in (*one.parser, *one.canonicalizer):
        assert isinstance(part, str) and part
    assert pickle.loads(pickle.dumps(one)).canonicalizer == one.canonicalizer


def test_importing_all_formats_loads_no_parser() -> None:
    program = (
        "import sys, chunksink.ingest.formats.markdown.addresses\n"
        "from chunksink.ingest.formats.registry import all_formats; all_formats()['markdown'].parser\n"
        "heavy = {'markdown_it', 'lxml', 'yaml', 'mammoth', 'pypdfium2', 'openpyxl', 'html_to_markdown', 'numpy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


Install = Callable[[str, str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package of one module that brings the format `NAME = PACKAGE.MODULE:CLASS`, as pip would."""
    loaded: list[str] = []

    def install(name: str, place: str, code: str) -> None:
        module, _, _ = place.partition(":")
        package, _, file = module.partition(".")
        site = tmp_path / "site" / package
        (site / package).mkdir(parents=True)
        (site / package / "__init__.py").touch()
        (site / package / f"{file}.py").write_text(code)
        info = site / f"{package}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{name} = {place}\n")
        monkeypatch.syspath_prepend(str(site))
        registry.all_formats.cache_clear()
        loaded.extend((package, module))

    yield install
    registry.all_formats.cache_clear()
    for module in loaded:
        sys.modules.pop(module, None)


@pytest.fixture
def notes(install: Install) -> None:
    """The format of docs/writing-a-format.md."""
    text = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (entry,) = re.findall(r'^notes = "(.*?)"$', text, re.MULTILINE)
    install("notes", entry, code)


def test_a_format_of_another_package_is_found_by_its_entry_point(bench: Bench, notes: None) -> None:
    bench.write("a.note", "Otters\nAn otter holds hands.\n")
    report = bench.ingest()
    assert (dict(report.kinds), bench.texts()) == ({"notes": 1}, {"docs/a.note": ["# Otters\n\nAn otter holds hands."]})
    assert bench.ingest().unchanged == 1
    assert bench.records()[0]["source"]["source_type"] == "notes"


def test_unexpected_error_of_a_format_ends_the_run(bench: Bench, notes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("a.note", b"\xff")
    with pytest.raises(UnicodeDecodeError):
        ingest([bench.docs], bench.bus, bench.home, Options())
    assert not bench.bus.exists


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("html", "class Mine: ..."),  # the name of a built-in format
        ("notes", "class Mine: ..."),  # the name of another package's format
        ("mine", "import no_such_module"),
        ("mine", "class Other: ..."),
        ("mine", "class Mine:\n    def __init__(self, size): ..."),
    ],
)
def test_format_that_cannot_be_used_ends_the_run_and_names_its_package(
    bench: Bench, install: Install, notes: None, name: str, code: str
) -> None:
    bench.write("a.md", "# A\n")
    install(name, "mistake.formats:Mine", code)
    with pytest.raises(IngestRefused, match=rf"\bmistake\b.* {name}\b|\b{name} .* mistake\b"):
        ingest([bench.docs], bench.bus, bench.home, Options())
    assert not bench.bus.exists


RECIPES = """
from dataclasses import dataclass, field

from chunksink.ingest.formats.registry import Match
from chunksink.ingest.formats.rows import RowsFormat


@dataclass(frozen=True)
class RecipesFormat(RowsFormat):
    name = "recipes"
    fields: dict[str, str] = field(default_factory=lambda: {"text": "steps", "id": "dish"})

    def match(self, record, *, is_alone=False):
        return Match.DECLARED if "dish" in record else Match.NO
"""


def test_unknown_file_is_read_once_a_format_recognises_it(
    bench: Bench, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = list(sys.path)
    bench.write("recipes.jsonl", [{"dish": "soup", "steps": "Boil it."}])
    bench.write("empty.jsonl", "")
    for _ in range(2):
        assert bench.ingest().left_out == {RECORD_FORM_UNKNOWN: 1, SOURCE_EMPTY: 1}
    install("recipes", "kitchen.recipes:RecipesFormat", RECIPES)
    report = bench.ingest()
    assert (report.processed, report.left_out, len(bench.records())) == (1, {SOURCE_EMPTY: 1}, 1)
    assert bench.ingest().unchanged == 1
    # Without the package the chunks of the last good reading stay.
    monkeypatch.setattr(sys, "path", without)
    registry.all_formats.cache_clear()
    report = bench.ingest()
    assert (report.left_out, len(bench.records())) == ({RECORD_FORM_UNKNOWN: 1, SOURCE_EMPTY: 1}, 1)


# -- the chunk ids of the examples, recorded when their formats were first released: they do not change

GOLDEN: dict[str, list[str]] = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", GOLDEN)
def test_the_chunk_ids_of_an_example_do_not_change(bench: Bench, name: str) -> None:
    bench.docs = ROOT / "examples" / name
    assert bench.ingest().failed == 0
    assert [record["chunk_id"] for record in bench.records()] == GOLDEN[name]
