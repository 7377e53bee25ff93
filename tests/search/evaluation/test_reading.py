"""Files of queries and judgements in all formats, wrong files, and how judgements name documents."""

from itertools import groupby
from pathlib import Path

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.search.evaluation.evaluate import choose
from chunksink.search.evaluation.naming import find_naming
from chunksink.search.evaluation.reading import InvalidEvaluation, read_judgements, read_queries
from chunksink.sinks.projection import project_family
from tests.ingest.bench import Bench


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize(
    "text",
    [
        '{"_id": "1", "text": "What is it?"}\n\n{"_id": "b 2", "text": "żółw", "metadata": {}}\n',
        "1\tWhat is it?\r\nb 2\tżółw\r\n",
        "\ufeff1\tWhat is it?\nb 2\tżółw",
    ],
)
def test_read_queries_accepts_json_lines_and_tabs(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")
    assert read_queries(path) == {"1": "What is it?", "b 2": "żółw"}


def test_read_queries_accepts_trec_topics(path: Path) -> None:
    path.write_text(
        "<top>\n<num> Number: 301\n<title> International Organized\nCrime\n<desc> Identify it.\n</top>\n"
        "<top>\n<num>302</num><title>Polio</title>\n</top>\n"
    )
    assert read_queries(path) == {"301": "International Organized Crime", "302": "Polio"}


@pytest.mark.parametrize(
    "text",
    [
        "query-id\tcorpus-id\tscore\n1\td 1\t2\n1\td2\t0\nb\td 1\t1\n",
        "1\td 1\t2\n1\td2\t0\nb\td 1\t1",
        "1\t0\td 1\t2\n1\t0\td2\t0\r\nb\tQ0\td 1\t1\n",
    ],
)
def test_read_judgements_accepts_beir_and_trec(path: Path, text: str) -> None:
    path.write_text(text)
    assert read_judgements(path) == {"1": {"d 1": 2, "d2": 0}, "b": {"d 1": 1}}


def test_read_judgements_accepts_spaces_as_separators(path: Path) -> None:
    path.write_text("1 0  184   2\n2 0 12 -1\n")
    assert read_judgements(path) == {"1": {"184": 2}, "2": {"12": -1}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"_id": "1", "text": "a"}\n{"_id": "2"}\n', 2),
        ('{"_id": "1", "text": "a"}\n{"_id": ', 2),
        ('{"_id": "1", "text": "a"}\n["1"]', 2),
        ('{"_id": "1", "text": "a"}\n\n{"_id": "1", "text": "b"}', 3),
        ("1\ta\nno tab here\n", 2),
        ("<top>\n<num> 1\n<title> a\n</top>\n<top>\n<num> 2\n</top>", 5),
        ("<top>\n<num> 1\n<title> a\n</top>\n<top>\n<num> 1\n<title> b\n</top>", 5),
    ],
)
def test_wrong_query_is_refused_with_its_line(path: Path, text: str, line: int) -> None:
    path.write_text(text)
    with pytest.raises(InvalidEvaluation, match=rf"{path}, line {line}: "):
        read_queries(path)


@pytest.mark.parametrize(
    ("text", "line"),
    [("query-id\tcorpus-id\tscore\n1\td1\n", 2), ("1\td1\tgood\n", 1), ("1 0 d1 1\n1 0 d2 1.5\n", 2)],
)
def test_wrong_judgement_is_refused_with_its_line(path: Path, text: str, line: int) -> None:
    path.write_text(text)
    with pytest.raises(InvalidEvaluation, match=rf"{path}, line {line}: "):
        read_judgements(path)


def test_file_that_is_not_utf8_is_refused(path: Path) -> None:
    path.write_bytes(b"1\t\xff\xfe\n")
    with pytest.raises(InvalidEvaluation, match=str(path)):
        read_queries(path)


def test_choose_keeps_queries_with_a_relevant_document() -> None:
    queries = {"c": "sea", "a": "cat", "b": "dog", "d": "tax"}
    judgements = {"a": {"x": 1}, "b": {"x": 0}, "d": {"y": 2, "z": 0}, "missing": {"x": 1}}
    judged = choose(queries, judgements)
    assert judged.queries == {"a": "cat", "d": "tax"}
    assert (judged.not_judged, judged.without_text) == (2, 1)
    assert choose(queries, judgements, 1).judgements == {"a": {"x": 1}}
    with pytest.raises(InvalidEvaluation):
        choose(queries, {"other": {"x": 1}, "b": {"x": 0}})


@pytest.mark.parametrize("beside", [{}, {"url": "https://a.example/x.html"}])
def test_find_naming_matches_ids_of_rows(tmp_path: Path, beside: Record) -> None:
    bench = Bench(tmp_path)
    bench.write(
        "rows.jsonl", [{"_id": name, "title": "A", "text": f"Words of {name}.", **beside} for name in ("d1", "a/b.5")]
    )
    assert bench.ingest(format="rows").failed == 0
    families = groupby(bench.records(), key=lambda record: record["parent_id"])
    documents = [document for _, records in families for document in project_family(list(records))]
    naming = find_naming(documents, {"q": {"d1": 1, "a/b.5": 1, "d9": 1}})
    assert (naming.field, naming.missing) == ("filename", {"d9"})
    assert sorted(naming.names(documents)) == ["a/b.5", "d1"]
