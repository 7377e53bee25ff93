"""chunksink in a project whose modules have the names of chunksink's packages."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

NAMES = ("chunkbus", "embeddings", "ingest", "rebuild", "search", "settings", "sinks")
PROGRAM = """\
import chunkbus, embeddings, ingest, rebuild, search, settings, sinks
import chunksink
from chunksink.errors import ChunksinkError, NoGeneration

assert all(module.THEIRS for module in (chunkbus, embeddings, ingest, rebuild, search, settings, sinks))
with chunksink.open(sinks=["fts"]) as index:
    try:
        index.search("otter")
    except NoGeneration as error:
        assert isinstance(error, ChunksinkError)
    print(index.ingest("notes"), index.sync())
    answer = index.search("otter")
    print(answer, answer[0])
    assert answer[0].source_uri == "notes/otter.md"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with modules and packages of its own under all those names."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in NAMES:
        file = folder / name / "__init__.py" if name in ("sinks", "rebuild", "embeddings") else folder / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text("THEIRS = True\n")
    (folder / "main.py").write_text(PROGRAM)
    (folder / "test_main.py").write_text("def test_main() -> None:\n    import main\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "otter.md").write_text("# Otters\n\nAn otter holds hands while it sleeps.\n")
    return folder


def run(project: Path, *command: str | Path, **environment: str) -> str:
    """The output of a command in the project's folder. If it fails, the whole output is shown."""
    done = subprocess.run(
        list(map(str, command)), cwd=project, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_script_in_the_project_opens_syncs_and_searches(project: Path) -> None:
    output = run(project, sys.executable, "main.py")
    assert [line.partition(" ")[0] for line in output.splitlines()] == ["<IngestReport", "<Answer"]
    assert len(output.splitlines()) == 2, "the repr of a report, an answer and a hit is one line"


def test_pytest_in_the_project_imports_both(project: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_main.py"]
    run(project, *command, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")  # loading the plugins would take longer than the test


def test_command_line_in_the_project_works(project: Path) -> None:
    """As a module and as a script."""
    module = [sys.executable, "-m", "chunksink"]
    script = [sys.executable, Path(sysconfig.get_path("scripts")) / "chunksink"]
    settings = {"PYTHONPATH": ".", "CHUNKSINK_SINKS": "fts"}
    run(project, *script, "ingest", "notes", "--sync", **settings)
    for command in (module, script):
        assert "notes/otter.md" in run(project, *command, "search", "otter", **settings)


def test_wheel_installs_one_name_only(project: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT]
    run(tmp_path, *build)
    (wheel,) = tmp_path.glob("*.whl")
    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=False, symlinks=True)
    (packages,) = fresh.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    top_level = {path.name for path in packages.iterdir() if not path.name.endswith(".dist-info")}
    assert top_level == {"chunksink"}
    # The libraries that chunksink needs. A .pth file of an editable install has no effect in that folder.
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    python = fresh / "bin" / "python"
    alone = {"PYTHONPATH": ""}
    where = run(tmp_path, python, "-c", "import chunksink.sinks as package; print(package.__file__)", **alone).strip()
    assert Path(where).is_relative_to(packages)
    assert "<Answer" in run(project, python, "main.py", **alone)
    schema = run(tmp_path, python, "-m", "chunksink", "schema", "chunk", **alone)
    assert json.loads(schema) == json.loads((ROOT / "chunksink" / "schema" / "chunk.schema.json").read_text())
