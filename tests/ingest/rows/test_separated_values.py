"""Rows of CSV and TSV files: separators, quotes, the names of columns, and errors."""

import csv
from pathlib import Path

import pytest

from chunksink.chunkbus import findings
from chunksink.ingest import codes
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.rows import header_matches
from tests.ingest.reading import families, names, notices, texts
from tests.ingest.rows.samples import read_file


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separator_is_found_in_the_header(tmp_path: Path, separator: str, mark: str, end: str) -> None:
    lines = [
        "ID;Title;Text",
        '1;Whales;"They breathe;air"',
        "",
        '2;;"Two',
        "",
        'lines ""quoted"""',
        "3;Seals;They swim",
    ]
    items = read_file(tmp_path / "r.csv", mark + end.join(lines).replace(";", separator))
    assert notices(items) == []
    assert names(items) == ["r.csv#id=1", "r.csv#id=2", "r.csv#id=3"]
    breathe = f"They breathe{separator}air".replace("\t", " ")
    assert texts(items) == [[breathe], ['Two\n\nlines "quoted"'], ["They swim"]]
    metadata = [chunks[0]["metadata"] for chunks in families(items)]
    assert metadata == [{"id": "1", "title": "Whales"}, {"id": "2"}, {"id": "3", "title": "Seals"}]


@pytest.mark.parametrize("first", ["sep=|", "SEP=|\r"])
def test_first_line_may_state_the_separator_as_excel_does(tmp_path: Path, first: str) -> None:
    items = read_file(tmp_path / "r.csv", f"\ufeff{first}\nid|a,b,c|text\n1||x\n||y\n")
    assert (names(items), texts(items)) == (["r.csv#id=1", "r.csv#line=4"], [["x"], ["y"]])
    assert header_matches(tmp_path / "r.csv")


def test_record_is_named_by_its_first_line(tmp_path: Path) -> None:
    items = read_file(tmp_path / "r.csv", 'title,text\na,"one\ntwo"\nb,x,y\nc,"x, y",,\n,\n')
    assert names(items) == ["r.csv#line=2", "r.csv#line=5"]
    assert texts(items) == [["one\ntwo"], ["x, y"]]
    assert notices(items) == [(4, findings.WRONG_TYPE, True), (6, codes.SOURCE_EMPTY, False)]


def test_quotes_between_tabs_may_be_plain(tmp_path: Path) -> None:
    items = read_file(tmp_path / "r.tsv", 'id\ttext\n1\t"Hi" she said\n2\t"so\n')
    assert texts(items) == [['"Hi" she said'], ['"so']]
    assert texts(read_file(tmp_path / "r.tsv", 'id\ttext\n1\t"two\nlines"\n2\tx\n')) == [["two\nlines"], ["x"]]


def test_columns_without_a_name_of_their_own_are_numbered(tmp_path: Path) -> None:
    items = read_file(tmp_path / "r.csv", ",Id,Review Text ,id,Text\n0,7,fine,8,All\n")
    assert families(items)[0][0]["metadata"] == {"column_1": "0", "id": "7", "review_text": "fine", "column_4": "8"}


def test_cells_of_a_repeated_name_are_a_list(tmp_path: Path) -> None:
    lines = ["id,Labels,text,labels,Date,,date", "1,vip,x,tier2,2024-01-02,a,b", "2,,y,vip,,,", "3,,z,,,,"]
    found = [chunks[0]["metadata"] for chunks in families(read_file(tmp_path / "r.csv", "\n".join(lines)))]
    labels, others = ["vip", "tier2"], {"date": "2024-01-02", "column_6": "a", "column_7": "b"}
    assert found == [
        {"id": "1", "tags": labels, "labels": labels, **others},
        {"id": "2", "tags": ["vip"], "labels": ["vip"]},
        {"id": "3"},
    ]


@pytest.mark.parametrize(
    "data",
    [
        b'id,text\n1,x\n2,"no end\n3,x\n',
        b'id,text\n1,x\n2,"' + b"x" * (2**20 + 1) + b'"\n',
        b'id,text\n1,x\n2,"' + b"words\n" * 2**18 + b'"\n',
        "id,text\n1,x\n2,caf\u00e9\n".encode("cp1252"),
        "id,text\n1,x\n".encode("utf-16"),
    ],
)
def test_nothing_is_read_where_a_quote_a_line_or_a_byte_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    monkeypatch.setattr("chunksink.ingest.formats.rows.separated_values.MAX_CHARACTERS", 2**20)
    before = csv.field_size_limit(2**17)
    try:
        with pytest.raises(SourceFailed) as failed:
            read_file(tmp_path / "r.csv", data)
    finally:
        csv.field_size_limit(before)
    assert failed.value.code == codes.CHUNKING_FAILED


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"id,text\n1,x\n", True),
        (b"day,price\n1,2\n", False),
        (b"", False),
    ],
)
def test_header_matches_with_a_text_and_a_name(tmp_path: Path, data: bytes, expected: bool) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(data)
    assert header_matches(path) is expected
