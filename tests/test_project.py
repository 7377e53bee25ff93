"""Checks of the repository itself: rules that are easily forgotten and noticed only by others."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tools.lowest import lowest

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = PYPROJECT["project"]

# Top-level packages that are not shipped.
OWN_USE = {"tests", "tools", "bench"}

# Written in pieces, so that this file obeys its own rule.
REGISTRY_HOSTS = ["py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "npm" + "js.com", "deb.debian" + ".org"]
FORBIDDEN = re.compile(
    "|".join(
        [
            *(re.escape(host) for host in REGISTRY_HOSTS),
            r"(?:(?<![\w.~/-])|(?<=file://))/(?:work|root|opt/(?:wheels|pypi))/",  # folders of one machine
            r"\bissue\s*#?\d+\b",  # a tracker that readers do not have
            r"\bClau" + r"de\b|\bAnthro" + r"pic\b|\bsub-?agent",
            r"BEGIN (?:RSA |EC |OPENSSH )?PRIVATE" + r" KEY",
        ]
    ),
    re.IGNORECASE,
)


def repository_files() -> list[Path]:
    """The files that git tracks or would track, so that problems are found before the commit."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def packages() -> set[str]:
    """The packages that are shipped."""
    return {path.parent.name for path in ROOT.glob("[a-z]*/__init__.py")} - OWN_USE


def requirement_names() -> list[str]:
    lines = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    names = [re.split(r"[\s<>=!~;\[]", line, maxsplit=1)[0] for line in lines]
    return sorted(set(names) - {PROJECT["name"]})


def test_every_folder_of_tests_is_a_package() -> None:
    """Otherwise pytest would put `tests/sinks` on the path as `sinks`, before the real package."""
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}
    chain = {
        parent for folder in folders for parent in [folder, *folder.parents] if parent.is_relative_to(ROOT / "tests")
    }
    assert [str(folder.relative_to(ROOT)) for folder in sorted(chain) if not (folder / "__init__.py").exists()] == []


def test_no_file_names_a_registry_or_a_folder_of_one_machine() -> None:
    found = []
    for path in repository_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture, or a file that is damaged on purpose
        for number, line in enumerate(text.splitlines(), start=1):
            hit = FORBIDDEN.search(line)
            if hit:
                found.append(f"{path.relative_to(ROOT)}:{number}: {hit[0]}")
    assert found == []


def test_no_pattern_has_a_possessive_group() -> None:
    """Python before 3.11.5 finds other ends for `(?:...)*+` than later versions. Use `chunkbus.patterns` instead."""
    possessive = re.compile(r"(?<![\\(])\)[*+?]" + r"\+")
    assert possessive.search("(?:a|b)" + "*+") and not possessive.search(r"\)" + "*+")
    files = [path for package in packages() for path in (ROOT / package).rglob("*.py")]
    assert [path for path in files if possessive.search(path.read_text(encoding="utf-8"))] == []


def without_output(page: str) -> str:
    """A page whose console blocks have empty lines instead of output, which is as wide as the commands print it."""
    return re.sub(
        r"^```console\n.*?^```$",
        lambda block: re.sub(r"^[^$`].*$", "", block[0], flags=re.MULTILINE),
        page,
        flags=re.DOTALL | re.MULTILINE,
    )


def test_markdown_lines_have_at_most_100_columns() -> None:
    """Except tables, lines with a link, indented code, output of commands, and the sample texts."""
    names = [path.relative_to(ROOT) for path in repository_files() if path.suffix == ".md"]
    long = [
        f"{name}:{number}"
        for name in names
        if name.parts[0] != "examples"
        for number, line in enumerate(without_output((ROOT / name).read_text(encoding="utf-8")).splitlines(), start=1)
        if len(line) > 100 and not line.startswith(("|", "    ")) and "](" not in line
    ]
    assert long == []


def test_no_large_file_is_committed() -> None:
    large = {
        str(path.relative_to(ROOT)): path.stat().st_size for path in repository_files() if path.stat().st_size > 2**20
    }
    assert large == {}


@pytest.mark.parametrize("name", requirement_names())
def test_every_dependency_has_its_reason(name: str) -> None:
    """`docs/dependencies.md` names it in backticks, with a reason on the same line."""
    lines = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").splitlines()
    own = [line for line in lines if f"`{name}`" in line]
    assert own, f"{name} is not in docs/dependencies.md"
    assert any(len(re.findall(r"\w+", line.replace(f"`{name}`", ""))) >= 4 for line in own), f"no reason for {name}"


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.partition("==") for line in lines if not line.startswith("#")]
    return {name: version for name, _, version in pins}


def test_the_constraints_are_plain_pins_with_torch_held() -> None:
    pins = constraints()
    assert pins["torch"] == "2.13.0"
    for name, version in pins.items():
        # No local version, path, address or marker: they would bind the file to the machine that made it.
        assert re.fullmatch(r"[A-Za-z0-9._-]+", name), name
        assert re.fullmatch(r"[0-9][A-Za-z0-9.!]*", version), f"{name}=={version}"


def test_every_dependency_is_pinned() -> None:
    def normal(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    pinned = {normal(name) for name in constraints()}
    assert [name for name in requirement_names() if normal(name) not in pinned] == [], "run `make lock`"


@pytest.mark.parametrize("package", sorted(packages() - {"chunksink"}))
def test_a_package_is_linked_bound_by_the_import_contracts_and_forbidden_under_its_bare_name(package: str) -> None:
    link = ROOT / "chunksink" / package
    assert link.is_symlink() and link.readlink() == Path("..", package)
    tool = PYPROJECT["tool"]
    assert package in tool["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    layers = next(entry for entry in tool["importlinter"]["contracts"] if entry["id"] == "layers")["layers"]
    assert package in re.findall(r"\w+", " ".join(layers[1:]))


def test_every_promise_has_tests_that_carry_its_number() -> None:
    from tools.pages import PROMISES

    proven = {
        int(number)
        for file in ROOT.glob("tests/**/test_*.py")
        for number in re.findall(r"mark\.promise\((\d+)\)", file.read_text(encoding="utf-8"))
    }
    assert proven == PROMISES.keys()


def test_the_oldest_versions_are_those_of_the_bounds() -> None:
    assert lowest(["a>=1.9", "A[x]>=1.10,<3", "b", "c-d==2.0"]) == ["a==1.10", "c-d==2.0"]
    with pytest.raises(SystemExit, match="c<2 has no lower bound to test"):
        lowest(["c<2"])
