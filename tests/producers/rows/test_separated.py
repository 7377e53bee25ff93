"""Files of separated values: their header, cells over several lines, and what breaks them."""

import csv
from pathlib import Path

import pytest

from chunksink.chunkbus import findings
from chunksink.producers import errors
from chunksink.producers.detect import look_at
from chunksink.producers.produced import LeftOut, Produced
from chunksink.producers.rows.reader import RowReader
from tests.producers.reading import read_all, refusals


def read(path: Path, data: str | bytes) -> tuple[list[Produced], list[LeftOut]]:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_all(RowReader(), path, uri=path.name)


def told(produced: list[Produced]) -> list[tuple[str, str]]:
    return [(family.source_uri, family.records[0]["text"]) for family in produced]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_header_tells_the_separator(tmp_path: Path, separator: str, mark: str, end: str) -> None:
    lines = [
        "ID;Title;Text",
        '1;Whales;"They breathe;air"',
        "",
        '2;;"Two',
        "",
        'lines ""quoted"""',
        "3;Seals;They swim",
    ]
    data = mark + end.join(lines).replace(";", separator)
    produced, left = read(tmp_path / "r.csv", data)
    assert left == []
    assert told(produced) == [
        ("r.csv#id=1", f"They breathe{separator}air".replace("\t", " ")),
        ("r.csv#id=2", 'Two\n\nlines "quoted"'),
        ("r.csv#id=3", "They swim"),
    ]
    assert [family.records[0]["metadata"] for family in produced] == [
        {"id": "1", "title": "Whales"},
        {"id": "2"},
        {"id": "3", "title": "Seals"},
    ]


def test_a_record_is_named_and_told_by_its_first_line(tmp_path: Path) -> None:
    data = 'title,text\na,"one\ntwo"\nb,x,y\nc,"x, y",,\nd,\n'
    produced, left = read(tmp_path / "r.csv", data)
    assert told(produced) == [("r.csv#line=2", "one\ntwo"), ("r.csv#line=5", "x, y")]
    assert refusals(left) == [(4, findings.WRONG_TYPE, True), (6, errors.SOURCE_EMPTY, False)]
    assert "has 3 cells, and the header names 2: quote a cell" in left[0].reason


def test_the_last_record_of_an_id_counts(tmp_path: Path) -> None:
    produced, left = read(tmp_path / "r.tsv", "id\ttext\n1\told\n2\tother\n1\tnew\n")
    assert told(produced) == [("r.tsv#id=2", "other"), ("r.tsv#id=1", "new")]
    assert refusals(left) == [(2, findings.DUPLICATE_IDS, True)]


def test_an_empty_cell_is_an_empty_text_and_a_line_of_separators_is_nothing(tmp_path: Path) -> None:
    produced, left = read(tmp_path / "r.csv", "id,title,text\n1,a,x\n2,b,\n,,\n")
    assert told(produced) == [("r.csv#id=1", "x")]
    assert refusals(left) == [(3, errors.SOURCE_EMPTY, False), (4, errors.SOURCE_EMPTY, False)]


def test_excel_says_the_separator(tmp_path: Path) -> None:
    produced, left = read(tmp_path / "r.csv", "sep=;\r\nid;text\r\n1;a, b, c\r\n2;x;y\r\n")
    assert told(produced) == [("r.csv#id=1", "a, b, c")]
    assert [one.line for one in left] == [4]


def test_between_tabs_quotes_may_be_quotes(tmp_path: Path) -> None:
    produced, _ = read(tmp_path / "r.tsv", 'id\ttext\n1\t"Hi" she said\n2\t"so\n')
    assert told(produced) == [("r.tsv#id=1", '"Hi" she said'), ("r.tsv#id=2", '"so')]
    produced, _ = read(tmp_path / "r.tsv", 'id\ttext\n1\t"two\nlines"\n2\tx\n')
    assert told(produced) == [("r.tsv#id=1", "two\nlines"), ("r.tsv#id=2", "x")]


def test_lines_of_old_are_told(tmp_path: Path) -> None:
    _, left = read(tmp_path / "r.csv", "id,text\r1,x\r")
    assert (
        "line 1: new-line character seen in unquoted field; tr '\\r' '\\n' < OLD > NEW ends its lines" in left[0].reason
    )


def test_names_of_a_header(tmp_path: Path) -> None:
    produced, _ = read(tmp_path / "r.csv", ",Id,Review Text ,id,Text\n0,7,fine,8,All\n")
    assert produced[0].records[0]["metadata"] == {"column_1": "0", "id": "7", "review_text": "fine", "column_4": "8"}
    produced, left = read(tmp_path / "r.csv", "column_2,,text,title\nA,B,C,D\n")
    assert (told(produced), left) == ([("r.csv#line=2", "C")], [])
    assert produced[0].records[0]["metadata"] == {"column_2": "A", "column_3": "B", "title": "D"}


def test_what_is_not_utf_8_is_told_with_its_remedy(tmp_path: Path) -> None:
    produced, left = read(tmp_path / "r.csv", "id,text\n1,caf\u00e9\n2,tea\n".encode("cp1252"))
    assert told(produced) == [("r.csv#id=2", "tea")]
    assert refusals(left) == [(2, findings.ENCODING, True)]
    assert "iconv -f WINDOWS-1252" in left[0].reason
    produced, left = read(tmp_path / "r.csv", "id,text\n1,x\n".encode("utf-16"))
    assert (produced, refusals(left)) == ([], [(None, errors.CHUNKING_FAILED, True)])


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('2,"no end\n3,x', "line 3: unexpected end of data; write a quote within quotes twice"),
        ('2,"said "so" then"\n3,x', "line 3: ',' expected after '\"'; write"),
        ('2,"' + "x" * 2**20 + '"', "has a line of more than 1 MiB"),
        ('2,"' + "words\n" * 2**18 + '"', "line 3: field larger than field limit (1048576)"),
    ],
)
def test_where_a_quote_or_a_line_is_wrong_nothing_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str, reason: str
) -> None:
    monkeypatch.setattr("chunksink.producers.rows.reader.MAX_ROW_BYTES", 2**20)
    before = csv.field_size_limit(2**17)
    try:
        produced, left = read(tmp_path / "r.csv", f"id,text\n1,x\n{record}\n")
    finally:
        csv.field_size_limit(before)
    assert (produced, refusals(left)) == ([], [(None, errors.CHUNKING_FAILED, True)])
    assert reason in left[0].reason


def test_a_header_alone_and_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "r.csv", "id,text\n") == ([], [])
    assert read(tmp_path / "r.csv", "") == ([], [])


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("id,text\n1,x\n", "rows"),
        ("Title;Body\nx;y\n", "rows"),
        ("url,text\nhttps://a.example/,y\n", "rows"),
        ("sep=\nid,text\n1,x\n", None),
        ("text\nx\n", None),
        ("day,price\n1,2\n", None),
        ("id,name\n1,x\n", None),
        ("", None),
    ],
)
def test_rows_are_told_by_their_header(tmp_path: Path, data: str, kind: str | None) -> None:
    path = tmp_path / "r.CSV"
    path.write_text(data)
    assert look_at(path).kind == kind
    assert look_at(path).is_empty == (not data)
