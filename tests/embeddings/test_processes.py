"""Real processes: a kill -9 during encoding, readers beside a writer, several writers."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chunksink.embeddings.cache import VectorCache
from tests.conftest import ROOT
from tests.embeddings.endpoint import good, hang, serve
from tests.embeddings.helpers import HashEncoder, embed, numbered

pytestmark = pytest.mark.promise(2)

WRITER = """
import sys, time
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.vectors import vectors_for
from tests.embeddings.helpers import HashEncoder, stream, numbered

class Slow(HashEncoder):
    def encode(self, texts):
        for text in texts:
            time.sleep(float(sys.argv[3]))
        return super().encode(texts)

first, last = map(int, sys.argv[2].split("-"))
with VectorCache.open(sys.argv[1]) as cache:
    texts = numbered(last)[first:]
    for item in vectors_for(stream(texts), Slow(), cache):
        assert (item.vector == HashEncoder().vector(texts.pop(0))).all()
"""

ASKING = """
import sys
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.vectors import vectors_for
from tests.embeddings.endpoint import connect_to
from tests.embeddings.helpers import stream, numbered

encoder = connect_to(sys.argv[2])
with VectorCache.open(sys.argv[1]) as cache:
    list(vectors_for(stream(numbered(1000)), encoder, cache))
"""

LASTING = """
import sys, time
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import EncodedBatch
from chunksink.embeddings.vectors import vectors_for
from tests.embeddings.helpers import HashEncoder, stream, numbered

class Telling(HashEncoder):
    def encode_batches(self, texts, contexts=()):
        for position, text in enumerate(texts):
            if position == 8:
                print("waiting", flush=True)
                time.sleep(60)
            yield EncodedBatch([position], self.encode([text]), [0])

with VectorCache.open(sys.argv[1]) as cache:
    list(vectors_for(stream(numbered(1000)), Telling(), cache))
"""

READER = """
import sys, time
from chunksink.embeddings.cache import VectorCache
from tests.embeddings.helpers import HashEncoder, numbered, text_hash

encoder, most, slowest = HashEncoder(), 0, 0.0
texts = numbered(int(sys.argv[2]))
keys = [bytes.fromhex(text_hash(text)[7:]) for text in texts]
with VectorCache.open(sys.argv[1], replace_damaged=False) as cache:
    until = time.monotonic() + 30
    while most < len(texts) and time.monotonic() < until:
        started = time.monotonic()
        found = cache.lookup(encoder.fingerprint, keys, dimension=16)
        slowest = max(slowest, time.monotonic() - started)
        assert not found.corrupt
        assert len(found.positions) >= most, "what was committed stays"
        most = len(found.positions)
        for position, vector in zip(found.positions, found.vectors):
            assert (vector == encoder.vector(texts[position])).all()
print(most, slowest)
"""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def test_kill_while_the_encoder_is_slow_loses_no_vector(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    writer = start(LASTING, path)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "waiting\n"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    with VectorCache.open(path, replace_damaged=False) as cache:
        assert cache.read("SELECT count(*) FROM vector") == [(8,)]


def wait_for_rows(path: Path, least: int) -> int:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if path.exists():
            try:
                with VectorCache.open(path, replace_damaged=False) as cache:
                    rows: int = cache.read("SELECT count(*) FROM vector")[0][0]
            except Exception:
                rows = 0  # the writer has not created the file yet
            if rows >= least:
                return rows
        time.sleep(0.02)
    raise AssertionError(f"no {least} rows in 30 s")


@pytest.mark.parametrize("least", [1, 40])
def test_run_after_a_kill_computes_only_the_rest(tmp_path: Path, least: int) -> None:
    path = tmp_path / "vectors.db"
    writer = start(WRITER, path, "0-400", 0.005)
    wait_for_rows(path, least)
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    assert writer.returncode == -signal.SIGKILL
    with VectorCache.open(path) as cache:
        committed = cache.read("SELECT count(*) FROM vector")[0][0]
        encoder = HashEncoder()
        items = embed(numbered(400), encoder, cache)
    assert least <= committed < 400
    assert len(encoder.asked) == 400 - committed, "a committed vector is never computed again"
    assert [item.cached for item in items].count(True) == committed
    for text, item in zip(numbered(400), items, strict=True):
        assert item.vector is not None
        assert (item.vector == encoder.vector(text)).all()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_endpoint_that_hangs_loses_no_answered_vector(tmp_path: Path, end: signal.Signals) -> None:
    path = tmp_path / "vectors.db"
    with serve() as server:
        server.next = [good] * 13 + [hang(server)] * 10  # the first question, the probes, then 11 batches of 64
        process = start(ASKING, path, server.url)
        wait_for_rows(path, 706)
        process.send_signal(end)
        ended = time.monotonic()
        _, err = process.communicate(timeout=30)
        assert time.monotonic() - ended < 15, "nobody waits for a request that hangs"
        assert process.returncode == -end, err
    with VectorCache.open(path) as cache:
        assert cache.read("SELECT count(*) FROM vector") == [(706,)]


def test_two_readers_read_while_one_writes(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    VectorCache.open(path).close()
    readers = [start(READER, path, 300) for _ in range(2)]
    writer = start(WRITER, path, "0-300", 0.003)
    for process in (writer, *readers):
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        if process is not writer:
            rows, slowest = out.split()
            assert rows == "300"
            assert float(slowest) < 5.0


def test_several_writers_take_turns_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"  # it does not exist yet, so they also race to create it
    writers = [start(WRITER, path, f"{number * 50}-{number * 50 + 100}", 0.001) for number in range(4)]
    for writer in writers:
        _, err = writer.communicate(timeout=60)
        assert writer.returncode == 0, err
    with VectorCache.open(path) as cache:
        encoder = HashEncoder()
        embed(numbered(250), encoder, cache)
        assert encoder.asked == []
        assert cache.read("PRAGMA integrity_check") == [("ok",)]


def test_importing_the_package_is_light() -> None:
    program = (
        "import sys, chunksink.embeddings.settings, chunksink.embeddings.vectors; "
        "import chunksink.embeddings.maintenance; "
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'httpx', 'sqlite_utils', "
        "'huggingface_hub', 'click', 'tqdm'} & set(sys.modules); assert not heavy, heavy"
    )
    process = start(program)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
