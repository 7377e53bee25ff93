"""All formats have one interface, also those of other packages, and ids that do not change."""

import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chunksink.chunkbus.findings import DUPLICATE_IDS, FIELD_MISSING, JSON_PARSE, LINE_TOO_LONG
from chunksink.ingest.codes import (
    CHUNKING_FAILED,
    EVENT_MALFORMED,
    RECORD_FORM_UNKNOWN,
    RECORD_SUPERSEDED,
    SOURCE_EMPTY,
)
from chunksink.ingest.errors import IngestRefused
from chunksink.ingest.formats import registry
from chunksink.ingest.formats.registry import NAMES, Format, all_formats
from chunksink.ingest.options import Options
from chunksink.ingest.run import ingest
from chunksink.sinks.projection import project_family
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


def install_example(install: Install, name: str) -> None:
    """Installs a format of docs/writing-a-format.md."""
    text = PAGE.read_text(encoding="utf-8")
    (code,) = (code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if f'name = "{name}"' in code)
    (entry,) = re.findall(rf'^{name} = "(.*?)"$', text, re.MULTILINE)
    install(name, entry, code)


@pytest.fixture
def notes(install: Install) -> None:
    install_example(install, "notes")


@pytest.fixture
def tickets(install: Install) -> None:
    install_example(install, "tickets")


EVENTS = """
from chunksink.chunkbus.chunk import new_chunk
from chunksink.ingest.errors import RecordRefused
from chunksink.ingest.formats.registry import Format
from chunksink.ingest.model import Family
from chunksink.ingest.record_fields import new_provenance


class EventsFormat(Format):
    name, suffixes = "events", (".event",)
    parser = canonicalizer = ("events", "1")

    def read(self, source):
        for number, line in enumerate(source.path.read_text().splitlines(), start=1):
            name, _, what = line.partition(" ")
            if what == "bug":
                raise ValueError(what)
            if what == "refused":
                raise RecordRefused("EVENT_MALFORMED", what)
            chunk = new_chunk(
                document_id=name,
                text="x" * 2**23 if what == "long" else what,
                provenance=new_provenance(("source_uri", name), None, self.parser, self.canonicalizer),
                span_key=0,
                created_at=source.created_at,
                fields={"text": ""} if what == "field" else {"metadata": {"number": float(what == "nan" and what)}},
            )
            if what == "bare":
                del chunk["provenance"]["inputs"]
            yield Family([] if what == "none" else [chunk], line=number)
"""


@pytest.fixture
def events(install: Install) -> None:
    install("events", "my_events.formats:EventsFormat", EVENTS)


def test_a_format_of_another_package_is_found_by_its_entry_point(bench: Bench, notes: None) -> None:
    bench.write("a.note", "Otters\nAn otter holds hands.\n")
    report = bench.ingest()
    assert (dict(report.kinds), bench.texts()) == ({"notes": 1}, {"docs/a.note": ["# Otters\n\nAn otter holds hands."]})
    assert bench.ingest().unchanged == 1
    assert bench.records()[0]["source"]["source_type"] == "notes"


def test_file_keeps_its_chunks_while_the_package_of_its_format_is_missing(
    bench: Bench, notes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a.note", "Otters\nAn otter holds hands.\n")
    bench.ingest()
    before = bench.texts()
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not path.startswith(str(tmp_path / "site"))])
    registry.all_formats.cache_clear()
    for text, failed in (("An otter holds hands.", 0), ("An otter swims.", 1), ("An otter swims.", 1)):
        bench.write("a.note", f"Otters\n{text}\n")
        report = bench.ingest(prune=True)
        assert (report.failed, report.left_out, bench.texts()) == (failed, {RECORD_FORM_UNKNOWN: 1}, before)
        assert [failure.code for failure in report.failures] == [RECORD_FORM_UNKNOWN] * failed


def test_the_example_of_a_format_reports_files_that_it_cannot_decode(bench: Bench, notes: None) -> None:
    bench.write("a.note", "Cafés\nAn otter.\n".encode("latin-1"))
    assert [(one.source_uri, one.code) for one in bench.ingest().failures] == [("docs/a.note", CHUNKING_FAILED)]


def test_a_record_format_of_another_package_reads_its_records(bench: Bench, tickets: None) -> None:
    good = {"ticket": 7, "title": "Otters", "body": "An otter holds hands."}
    path = bench.write("a.jsonl", [good, {"ticket": 8}, {"ticket": 9, "body": "x" * (2**23 - 100)}])
    bench.write("rows.jsonl", [{"id": 1, "text": "A row."}])
    path.write_bytes(path.read_bytes() + b"{broken")
    report = bench.ingest(tenant="acme")
    assert [(one.code, one.line) for one in report.failures] == [
        (FIELD_MISSING, 2),
        (LINE_TOO_LONG, 3),
        (JSON_PARSE, 4),
    ]
    assert report.kinds == {"rows": 1, "tickets": 1}
    chunk = next(one for one in bench.records() if one["text"] == good["body"])
    fields = project_family([chunk])[0].as_dict()
    expected = {"source_uri": "docs/a.jsonl#ticket=7", "source_type": "tickets", "title": "Otters", "tenant_id": "acme"}
    assert {name: fields[name] for name in expected} == expected


@pytest.mark.parametrize("what", ["bug", "none"])
def test_unexpected_error_of_a_format_ends_the_run_and_names_the_file(bench: Bench, events: None, what: str) -> None:
    path = bench.write("a.event", f"1 {what}\n")
    with pytest.raises(ValueError) as raised:
        ingest([bench.docs], bench.bus, bench.home, Options())
    (note,) = raised.value.__notes__
    assert "events" in note and str(path) in note
    assert not bench.bus.exists


@pytest.mark.parametrize(
    ("what", "code", "line", "kept"),
    [
        ("long", LINE_TOO_LONG, 2, ["1", "3"]),
        ("bare", FIELD_MISSING, 2, ["1", "3"]),
        ("nan", JSON_PARSE, None, []),
        ("field", CHUNKING_FAILED, None, []),
        ("refused", EVENT_MALFORMED, None, []),
    ],
)
@pytest.mark.promise(6)
def test_invalid_chunk_is_a_failure_of_its_document_or_file(
    bench: Bench, events: None, what: str, code: str, line: int | None, kept: list[str]
) -> None:
    bench.write("a.event", f"1 one\n2 {what}\n3 three\n")
    bench.write("b.event", "4 four\n")
    report = bench.ingest()
    assert [(one.source_uri, one.code, one.line) for one in report.failures] == [("docs/a.event", code, line)]
    assert sorted(bench.names()) == [*kept, "4"]


def test_second_document_of_one_name_replaces_the_first_and_is_reported(bench: Bench, events: None) -> None:
    bench.write("a.event", "1 one\n2 two\n")
    bench.ingest()
    bench.write("a.event", "1 one\n1 two\n3 three\n3 three\n")
    report = bench.ingest(prune=True)
    assert [(one.code, one.line) for one in report.failures] == [(DUPLICATE_IDS, 2)]
    assert report.left_out == {RECORD_SUPERSEDED: 1, DUPLICATE_IDS: 1}
    assert bench.texts() == {"1": ["two"], "2": ["two"], "3": ["three"]}  # a failure keeps what --prune would remove


MINE = """
from chunksink.ingest.formats.registry import Format


class Mine(Format):
    name = 'mine'
    suffixes = ('.mine',)
    parser = canonicalizer = ("mine", "1")
    read = None
"""


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("html", "class Mine: ..."),  # the name of a built-in format
        ("notes", "class Mine: ..."),  # the name of another package's format
        ("mine", "import no_such_module"),
        ("mine", "class Other: ..."),
        ("mine", "class Mine:\n    def __init__(self, size): ..."),
        ("mine", "class Mine: name, suffixes = 'mine', ('.mine',)"),  # no subclass of Format
        ("other", MINE),
        ("mine", MINE.replace("name =", "title =")),
        ("mine", MINE.replace("suffixes =", "endings =")),
        ("mine", MINE.replace("parser = canonicalizer", "parser")),
        ("mine", MINE.replace("parser = canonicalizer", "canonicalizer")),
        ("mine", MINE.replace("('.mine',)", "'.mine'")),
        ("mine", MINE.replace(".mine", ".Mine")),
        ("mine", MINE.replace(".mine", ".nb.mine")),  # only the last suffix of a file counts
        ("mine", MINE.replace(".mine", ".note")),  # a suffix of another package's format
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


@pytest.mark.parametrize("suffix", [".html", ".md", ".csv", ".cast"])
def test_a_format_of_another_package_replaces_the_built_in_one_of_its_suffix(
    bench: Bench, install: Install, suffix: str
) -> None:
    bench.write(f"a{suffix}", "1 x,text\n")
    bench.write("b.txt", "A text.")
    bench.ingest(f"a{suffix}", ".")
    install("events", "my_events.formats:EventsFormat", EVENTS.replace(".event", suffix))
    report = bench.ingest()
    assert (report.kinds, report.unchanged) == ({"events": 1, "text": 1}, 1)
    assert bench.texts()["1"] == ["x,text"]
    assert bench.ingest().unchanged == 2


def test_a_format_without_match_replaces_the_built_in_ones_of_json_records(bench: Bench, install: Install) -> None:
    install("events", "my_events.formats:EventsFormat", EVENTS.replace(".event", ".jsonl"))
    bench.write("a.jsonl", "1 x\n")
    assert bench.ingest().kinds == {"events": 1}


def test_two_formats_of_other_packages_share_a_suffix_if_both_match_records(
    bench: Bench, install: Install, tickets: None
) -> None:
    bench.write("a.jsonl", [{"ticket": 7, "body": "x"}])
    bench.write("b.jsonl", [{"dish": "soup", "steps": "Boil it."}])
    install("recipes", "kitchen.recipes:RecipesFormat", RECIPES)
    assert bench.ingest().kinds == {"recipes": 1, "tickets": 1}


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
