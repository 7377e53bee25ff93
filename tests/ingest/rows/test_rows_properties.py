"""What must hold for every file of rows: no word is lost, CSV is read like JSON, memory is flat."""

import csv
import tracemalloc
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunksink.chunkbus.canonical import sha256_hex
from chunksink.ingest.formats.markdown.policy import V1, V2, Policy
from chunksink.ingest.formats.rows.separated_values import read_separated
from chunksink.ingest.json_records import NumberedRecord
from chunksink.ingest.model import Empty, Family, Source
from tests.conftest import HEAVY, examples
from tests.ingest.reading import notices, solid
from tests.ingest.rows.samples import FORMAT, read_file, read_rows

text = st.text(alphabet="ab .!?,;\"'茶é-#|`<p>/\n\r\t\u2028", max_size=60)
long_text = text | text.map(lambda words: (words + " word. ") * 40)
field = text.filter(lambda words: words != "")
rows = st.lists(
    st.fixed_dictionaries(
        {"id": st.integers(0, 5).map(str), "text": long_text}, optional={"title": field, "note": field}
    ),
    max_size=8,
)
NAMES = ("id", "text", "title", "note")


@settings(max_examples=examples(150))
@given(rows, st.sampled_from([V1, V2]))
def test_no_word_is_lost_and_two_readings_agree(
    tmp_path_factory: pytest.TempPathFactory, written: list[dict[str, str]], policy: Policy
) -> None:
    folder = tmp_path_factory.mktemp("p")
    items = read_rows(folder, *written, format_=FORMAT.with_policy(policy))
    assert items == read_rows(folder, *written, format_=FORMAT.with_policy(policy))
    assert not any(is_failure for *_, is_failure in notices(items))
    last = {row["id"]: row["text"] if row["text"].strip() else row.get("title", "") for row in written}
    found = {}
    for item in items:
        if isinstance(item, Empty):
            found[item.family] = ""
        elif isinstance(item, Family):
            texts = (solid(one["text"][one["overlap_chars"] :]) for one in item.chunks)
            found[item.chunks[0]["parent_id"]] = "".join(texts)
    expected = {sha256_hex(f"records.jsonl#id={id_}".encode()): solid(words) for id_, words in last.items()}
    assert found.keys() == expected.keys()
    assert all(found[family] == words for family, words in expected.items() if "<" not in words)


@settings(max_examples=examples(150))
@given(rows, st.sampled_from([",", ";", "\t", "|"]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), st.booleans())
def test_separated_values_are_read_like_json(
    tmp_path_factory: pytest.TempPathFactory,
    written: list[dict[str, str]],
    separator: str,
    quoting: int,
    has_mark: bool,
) -> None:
    path = tmp_path_factory.mktemp("p") / "r.csv"
    with path.open("w", newline="", encoding="utf-8-sig" if has_mark else "utf-8") as file:
        writer = csv.DictWriter(file, NAMES, delimiter=separator, quoting=quoting)
        writer.writeheader()
        writer.writerows(written)
    records = [found.record for found in read_separated(path, ()) if isinstance(found, NumberedRecord)]
    assert records == [{name: row[name] for name in NAMES if row.get(name)} for row in written]


@pytest.mark.parametrize(("name", "rows"), [("r.jsonl", 4_000), ("r.csv", 2_000)])
def test_memory_is_flat(tmp_path: Path, name: str, rows: int) -> None:
    words = [f"Words of {n}. " * 80 for n in range(3 * rows if HEAVY else rows)]
    path = tmp_path / name
    if name == "r.csv":
        path.write_text("id,text\n" + "".join(f'{n},"{text}"\n' for n, text in enumerate(words)))
    else:
        path.write_bytes(b"\n".join(orjson.dumps({"id": n, "text": text}) for n, text in enumerate(words)))
    source = Source(name, path, "ab" * 32, path.stat().st_size, "2026-01-01T00:00:00Z", {"name": "test"})
    read_file(tmp_path / f"small-{name}", "id,text\n1,x\n" if name == "r.csv" else '{"id": 1, "text": "x"}')  # imports
    tracemalloc.start()
    for _ in zip(range(100), FORMAT.read(source), strict=False):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < path.stat().st_size / 4
