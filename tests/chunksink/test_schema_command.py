"""`chunksink schema` in a checkout. tests/journey/test_import_names.py tests it in the wheel."""

import json

import pytest

from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("kind", "file"),
    [("chunk", "chunk.schema.json"), ("manifest", "manifest.schema.json"), ("ir", "ir-schema.json")],
)
def test_schema_when_the_kind_is_known_is_the_published_one(kind: str, file: str, shell: Shell) -> None:
    ended = shell("schema", kind)
    assert ended.code == Exit.OK
    assert json.loads(ended.out) == json.loads((ROOT / "chunksink" / "schema" / file).read_text(encoding="utf-8"))


def test_schema_when_the_kind_is_unknown_is_a_usage_error(shell: Shell) -> None:
    assert shell("schema", "nothing").code == Exit.USAGE
