"""The examples in the documentation: commands and options exist, configurations load, links lead somewhere."""

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest

from chunksink.cli import cli
from tests.conftest import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "bench" / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
]
by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@by_page
def test_commands_of_examples_parse(page: Path) -> None:
    for block in blocks(page, "sh"):
        for line in re.findall(r"^chunksink .*$", block.replace("\\\n", " "), re.MULTILINE):
            command: click.Command = cli
            words = shlex.split(line, comments=True)[1:]
            while isinstance(command, click.Group):
                found = command.get_command(click.Context(command), words.pop(0))
                assert found, line
                command = found
            command.make_parser(click.Context(command)).parse_args(words)


@by_page
def test_commands_in_prose_exist(page: Path) -> None:
    named = set(re.findall(r"`chunksink ([a-z][a-z-]*)", page.read_text(encoding="utf-8")))
    assert named - set(cli.list_commands(click.Context(cli))) == set()


@by_page
def test_toml_examples_are_valid(page: Path) -> None:
    assert all(tomllib.loads(block) for block in blocks(page, "toml"))


def anchors(page: Path) -> set[str]:
    """The ids that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\]\(.*?\)", "", heading)).lower().replace(" ", "-") for heading in headings
    }


@by_page
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if "://" not in link:
            path, _, fragment = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not fragment or fragment in anchors(target), link
