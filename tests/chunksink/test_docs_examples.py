"""Examples in the documentation: commands and options exist, configurations load, links have targets."""

import ast
import re
import shlex
import tomllib
from functools import cache
from hashlib import sha256
from inspect import isfunction
from pathlib import Path

import click

from chunksink.command_line.cli import cli
from chunksink.command_line.exits import Exit
from chunksink.settings.load import load_config
from chunksink.sinks import capabilities, contract
from chunksink.sinks.registry import open_sink
from tests.chunksink.shell import Shell, write
from tests.conftest import ROOT
from tests.support.bus import source

PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "bench" / "README.md",
    ROOT / "examples" / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_commands_of_examples_parse() -> None:
    for block in (block for page in PAGES for block in blocks(page, "sh")):
        for line in re.findall(r"^chunksink .*$", block.replace("\\\n", " "), re.MULTILINE):
            command: click.Command = cli
            words = shlex.split(line, comments=True)[1:]
            while isinstance(command, click.Group):
                found = command.get_command(click.Context(command), words.pop(0))
                assert found, line
                command = found
            command.make_parser(click.Context(command)).parse_args(words)


def test_commands_in_prose_exist() -> None:
    for page in PAGES:
        named = set(re.findall(r"`chunksink ([a-z][a-z-]*)", page.read_text(encoding="utf-8")))
        assert named - set(cli.list_commands(click.Context(cli))) == set(), page


def test_configurations_of_examples_load(tmp_path: Path) -> None:
    """Sinks are opened with their options, which calls no server. Tables of `pyproject.toml` are not configurations."""
    configurations = [block for page in PAGES for block in blocks(page, "toml") if "[project." not in block]
    assert len(configurations) > 5
    environment = {"MEILI_MASTER_KEY": "a key"}
    for block in configurations:
        filled_in = re.sub(r"SHA256-[A-Z-]+", lambda place: sha256(place[0].encode()).hexdigest(), block)
        (tmp_path / "chunksink.toml").write_text(filled_in, encoding="utf-8")
        for index in tomllib.loads(block).get("index", [None]):
            config = load_config({"index": index}, environment, tmp_path)
            for name in config.sinks:
                open_sink(name, tmp_path, config.sink.get(name, {})).close()


@cache
def anchors(page: Path) -> set[str]:
    """The ids that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\]\(.*?\)", "", heading)).lower().replace(" ", "-") for heading in headings
    }


def test_links_lead_to_files_and_headings() -> None:
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
            if "://" not in link:
                path, _, fragment = link.partition("#")
                target = page.parent / path if path else page
                assert target.exists(), (page, link)
                assert not fragment or fragment in anchors(target), (page, link)


def test_the_index_page_links_every_page() -> None:
    folder = ROOT / "docs"
    linked = set(re.findall(r"\]\(([\w-]+\.md)", (folder / "index.md").read_text(encoding="utf-8")))
    assert linked == {page.name for page in folder.glob("*.md")} - {"index.md"}


def test_the_example_of_a_gate_runs(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source("docs/a.md", "a cat")])
    write(quick_shell, "queries.tsv", "q1\tcat\n")
    write(quick_shell, "qrels.txt", "q1 0 docs/a.md 1\n")
    page = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"### As a gate in CI\n\n```sh\n(.*?)```", page, re.DOTALL)
    assert [quick_shell(*shlex.split(line)[1:]).code for line in section.splitlines()] == [Exit.OK] * 3


def methods(protocol: type) -> set[str]:
    return {name for name, value in vars(protocol).items() if isfunction(value) and not name.startswith("_")}


def test_the_page_about_sinks_lists_the_methods_and_capabilities_of_the_code() -> None:
    page = ROOT / "docs" / "writing-a-sink.md"
    tree = ast.parse(blocks(page, "python")[0])
    shown = {
        node.name: {method.name for method in node.body if isinstance(method, ast.FunctionDef)}
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    assert shown == {"MySink": methods(contract.Sink), "MyBuild": methods(contract.Build)}
    listed = re.findall(r"^\| `(Supports\w+)`", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(listed) == {name for name in vars(capabilities) if name.startswith("Supports")}
