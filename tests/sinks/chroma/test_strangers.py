"""What somebody else did to a Chroma folder: rows or the collection deleted, an old copy put back."""

import shutil
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings

from chunksink.sinks.chroma import ChromaSink
from chunksink.sinks.conformance.samples import family, held, wanted
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildMissing
from tests.conftest import sampled
from tests.support.many_families import FAMILIES, whole


@pytest.mark.parametrize("while_open", sampled([False, True]))
def test_the_collection_dropped_behind_our_back(
    sink: ChromaSink, signed_large: Marker, saved: Path, while_open: bool
) -> None:
    build = sink.open(signed_large.build_id) if while_open else None
    theirs = stranger(saved.parents[1])
    theirs.delete_collection("chunks")
    theirs.close()
    if build is None:
        with pytest.raises(BuildMissing, match="sync`, which makes it anew"):
            sink.open(signed_large.build_id)
    else:
        for call in (build.marker, build.count, lambda: held(build), lambda: build.replace(FAMILIES)):
            with pytest.raises(BuildMissing, match="sync`, which makes it anew"):
                call()
        build.close()
    sink.drop(signed_large.build_id)
    whole(sink)


def stranger(path: Path) -> Any:
    return chromadb.PersistentClient(f"{path}/./././.", settings=Settings(anonymized_telemetry=False))


@pytest.mark.parametrize("keep_times", sampled([True, False]))
def test_an_old_copy_put_back(
    sink: ChromaSink, signed_large: Marker, saved: Path, tmp_path: Path, keep_times: bool
) -> None:
    path = saved.parents[1]
    shutil.copytree(path, tmp_path / "old", copy_function=shutil.copy2 if keep_times else shutil.copy)
    build = sink.open(signed_large.build_id)
    build.sign(Marker("later", signed_large.build_id, 9))
    build.replace([family(f"f{n}", ["new"] * 20, version="2") for n in range(100)])
    build.close()
    shutil.rmtree(path)
    (tmp_path / "old").rename(path)
    build = sink.open(signed_large.build_id)
    assert (held(build), build.count(), build.marker()) == (wanted(FAMILIES), 1200, signed_large)
    assert all(np.isclose(one.vector @ one.vector, 1) for one in build.scan(vectors=True) if one.vector is not None)
    build.close()
    whole(sink)
