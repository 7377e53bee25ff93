"""What nobody foresaw: a bug under `--json`, and sinks of other packages that do not open."""

import json
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from chunksink.cli import run
from chunksink.exits import Exit
from tests.chunksink.shell import Shell
from tests.conftest import ROOT


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def require(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("chunksink.chunkbus.layout.BusRoot.require", require)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("command", ["validate", "sync", "plan"])
def test_a_bug_is_told_to_whoever_asked_for_json(command: str, shell: Shell) -> None:
    ended = shell(command, "--json")
    assert ended.code == Exit.BUG
    told = json.loads(ended.out)["error"]
    assert told["exit_code"] == 1
    assert "ZeroDivisionError: a bug" in told["message"]
    assert "Traceback" in ended.err
    assert 'raise ZeroDivisionError("a bug' in ended.err


def test_an_error_whose_words_are_no_unicode_is_told_too(tmp_path: Path) -> None:
    """As the names of files can be."""
    program = (
        "import sys\nfrom chunksink.chunkbus.layout import BusRoot\nfrom chunksink.cli import run\n"
        "def require(self): raise ZeroDivisionError('no \\udcff')\n"
        "BusRoot.require = require\nsys.exit(run(['validate', '--json', '--home', sys.argv[1]]))"
    )
    call = [sys.executable, "-c", program, str(tmp_path)]
    ended = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == Exit.BUG
    assert "no \\udcff" in json.loads(ended.stdout)["error"]["message"]
    assert "Traceback" in ended.stderr


@pytest.mark.usefixtures("broken")
def test_without_json_a_bug_keeps_its_traceback(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        run(["validate", "--home", str(tmp_path)])


def bring_sink(site: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with a sink called `failing`, as pip would install it."""
    metadata = site / "failing_sink-1.dist-info"
    metadata.mkdir(parents=True)
    (site / "failing_sink.py").write_text(code)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: failing_sink\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[chunksink.sinks]\nfailing = failing_sink:open_sink\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "failing_sink", raising=False)


def test_doctor_looks_at_the_rest_where_a_foreign_sink_does_not_open(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "def open_sink(home, options):\n    raise RuntimeError('no licence')\n"
    bring_sink(tmp_path / "site", code, monkeypatch)
    monkeypatch.setenv("CHUNKSINK_SINKS", "failing,fts")
    checks = {check["name"]: check for check in json.loads(shell("doctor", "--json").out)}
    assert checks["sink failing"]["verdict"] == "fail"
    assert "the sink failing cannot be opened: RuntimeError: no licence" in checks["sink failing"]["found"]
    assert checks["sink fts"]["verdict"] == "ok"
    assert "model" in " ".join(checks)
    ended = shell("sync")
    assert (ended.code, "Traceback" in ended.err) == (Exit.USAGE, False)


def test_doctor_looks_at_the_rest_where_a_sink_that_is_not_in_use_is_away(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "from chunksink.sinks.errors import Unreachable\n"
        "def open_sink(home, options):\n    raise Unreachable('nobody there')\n"
    )
    bring_sink(tmp_path / "site", code, monkeypatch)
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    monkeypatch.setenv("CHUNKSINK_SINK_FAILING_FOLDER", "x")
    checks = {check["name"]: check for check in json.loads(shell("doctor", "--json").out)}
    assert (checks["options of failing"]["verdict"], checks["options of failing"]["found"]) == ("warn", "nobody there")
    assert "model" in " ".join(checks)


# -- the name of the index ---------------------------------------------------------------------------------------------


def test_the_index_is_imported_when_it_is_named() -> None:
    program = (
        "import json, sys, chunksink\n"
        "heavy = {'chunksink.index', 'chunksink.chunkbus', 'chunksink.settings', 'numpy'}\n"
        "before = sorted(heavy & set(sys.modules))\n"
        "from chunksink.index import Index\n"
        "print(json.dumps([before, chunksink.Index is Index, hasattr(chunksink, 'Nonsense')]))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert orjson.loads(done.stdout) == [[], True, False]
