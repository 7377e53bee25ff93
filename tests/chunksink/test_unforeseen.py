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
