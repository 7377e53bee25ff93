"""Updates documents that are generated from the code. With `--check` it fails if one is outdated, and writes nothing.

cog fills the generated parts of `docs/*.md` and of `bench/README.md`. JSON Schemas, in `chunksink/schema/`, are whole
files.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from chunksink.ingest.formats.ir.schema import ir_schema  # noqa: E402 (needs the path above)
from tools.contract_schema import chunk_schema, manifest_schema  # noqa: E402

SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "chunk.schema.json": chunk_schema,
    "manifest.schema.json": manifest_schema,
    "ir-schema.json": ir_schema,
}


def main(check: bool) -> int:
    stale = [name for name, make in SCHEMAS.items() if not _update(ROOT / "chunksink" / "schema" / name, make(), check)]
    pages = [str(page.relative_to(ROOT)) for page in (*ROOT.glob("docs/*.md"), ROOT / "bench" / "README.md")]
    cog = subprocess.run(
        [sys.executable, "-m", "cogapp", *(["--check"] if check else ["-r"]), *pages], cwd=ROOT, check=False
    )
    for name in stale:
        print(f"chunksink/schema/{name} is outdated: run `python tools/docs.py`")
    return 1 if stale or cog.returncode else 0


def _update(file: Path, schema: dict[str, Any], check: bool) -> bool:
    """Writes the file, unless `check`. Returns whether it is up to date."""
    data = orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if check:
        return file.exists() and file.read_bytes() == data
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return True


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
