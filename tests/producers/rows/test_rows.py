"""Rows, one document each: who they are, what their text is taken for, what every chunk of them says."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import family_key, parent_id, resolve_parent_id
from chunksink.producers import errors
from chunksink.producers.produced import Emptied, LeftOut, Making, Produced
from chunksink.producers.records.frame import MAX_CARRIED_BYTES
from chunksink.producers.rows.markup import is_page
from chunksink.producers.rows.names import names_with
from chunksink.producers.rows.reader import RowReader
from chunksink.producers.rows.row import is_row
from chunksink.sinks.projection import project_family
from tests.producers.reading import MAKING, make_partition, read_all, read_records, refusals, write_lines

WHALES = {"id": 7, "title": "Whales", "text": "Whales breathe air."}


def read(tmp_path: Path, *rows: Record, making: Making = MAKING) -> list[Produced]:
    produced, left = read_records(RowReader(), tmp_path, rows, making)
    assert left == []
    return produced


def texts(family: Produced) -> list[str]:
    return [record["text"] for record in family.records]


def seen(family: Produced) -> dict[str, Any]:
    return project_family(list(family.records))[0].fields()


def keys(produced: list[Produced]) -> list[str]:
    return [family_key(parent_id(family.records[0]), family.tenant) for family in produced]


def test_a_row_is_a_document_of_its_own(tmp_path: Path) -> None:
    long = "\n\n".join(f"## Part {n}\n\n" + "Some words stand here. " * 20 for n in range(3))
    row = {
        "_id": "d/1",
        "headline": "Parts",
        "body": long,
        "author": "Ann",
        "date": "2020-02-03",
        "tags": ["sea", "air"],
    }
    [family, other] = read(tmp_path, row, WHALES)
    assert [record["metadata"]["title"] for record in family.records] == ["Parts"] * 3
    assert [record["chunk_index"] for record in family.records] == [0, 1, 2]
    assert texts(other) == ["Whales breathe air."]
    expected = {
        "source_uri": "records.jsonl#id=d%2F1",
        "title": "Parts",
        "headings": ("Part 0",),
        "authors": ("Ann",),
        "tags": ("sea", "air"),
        "year": 2020,
        "filename": "d/1",
        "extension": "jsonl",
        "path": "records.jsonl",
        "source_type": "rows",
    }
    assert {name: seen(family).get(name) for name in expected} == expected
    assert family.records[0]["metadata"]["_id"] == "d/1"
    assert make_partition(tmp_path / "bus", [family, other])


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"id": "a b", "text": "x"}, "records.jsonl#id=a%20b"),
        ({"id": 0, "text": "x"}, "records.jsonl#id=0"),
        ({"_id": {"$oid": "5f"}, "text": "x"}, "records.jsonl#id=5f"),
        ({"id": None, "docno": "WSJ-1", "text": "x"}, "records.jsonl#id=WSJ-1"),
        ({"id": True, "text": "x"}, "records.jsonl#line=1"),
        ({"id": "", "title": "x", "text": "x"}, "records.jsonl#line=1"),
        ({"text": "x"}, "records.jsonl#line=1"),
        ({"url": "https://a.example/x", "text": "x"}, "https://a.example/x"),
        ({"id": 7, "url": "https://a.example/x", "text": "x"}, "https://a.example/x"),
        ({"path": "notes/a.md", "content": "x"}, "notes/a.md"),
        ({"ID": None, "id": 7, "Text": None, "text": "x"}, "records.jsonl#id=7"),
        ({"url": None, "text": "x", "metadata": {"url": "https://a.example/x"}}, "https://a.example/x"),
        ({"Id": "4", "Body": "x"}, "records.jsonl#id=4"),
        ({"id": 4.0, "text": "x"}, "records.jsonl#id=4"),
        ({"id": " ", "uuid": " u ", "text": "x"}, "records.jsonl#id=u"),
        ({"url": "n/a", "text": "x"}, "records.jsonl#line=1"),
        ({"link": "Verweis", "text": "x"}, "records.jsonl#line=1"),
        ({"url": "/guide/", "text": "x"}, "/guide/"),
        ({"url": "https://api.a.example/7", "html_url": "https://a.example/7", "text": "x"}, "https://a.example/7"),
        ({"_id": "7", "text": "x", "metadata": {"url": "https://a.example/7"}}, "https://a.example/7"),
    ],
)
def test_what_it_is_called(tmp_path: Path, row: Record, name: str) -> None:
    [family] = read(tmp_path, row)
    assert (family.source_uri, seen(family)["source_uri"]) == (name, name)


def test_rows_of_one_address_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    rows = [{"id": n, "url": "https://a.example/x", "text": "The same."} for n in range(3)]
    produced = read(tmp_path, *rows)
    assert len(set(keys(produced))) == 3
    assert len({record["chunk_id"] for family in produced for record in family.records}) == 3
    assert keys(produced)[:1] == keys(read(tmp_path, {"id": 0, "text": "The same."}))


def test_a_path_is_a_name_within_its_file_alone(tmp_path: Path) -> None:
    row = {"path": "README.md", "content": "# Words"}
    one, two = (
        read_all(RowReader(), write_lines(tmp_path / name, [row]), uri=name)[0] for name in ("a.jsonl", "b.jsonl")
    )
    assert [seen(family)["source_uri"] for family in (*one, *two)] == ["README.md"] * 2
    assert len({*keys(one), *keys(two), family_key(resolve_parent_id(None, "README.md", ""), None)}) == 3


def test_addresses_that_differ_in_their_fragments_are_two(tmp_path: Path) -> None:
    rows = [{"url": f"https://a.example/x#{n}", "text": f"Comment {n}."} for n in range(2)]
    produced = read(tmp_path, *rows)
    assert len(set(keys(produced))) == 2
    assert [seen(family)["source_uri"] for family in produced] == [row["url"] for row in rows]


def test_elements_of_an_array_and_files_of_a_folder_have_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(orjson.dumps([{"text": "x"}, {"text": "y"}]))
    produced, left = read_all(RowReader(), tmp_path / "a.json", uri="a.json")
    assert ([family.source_uri for family in produced], left) == (["a.json#row=1", "a.json#row=2"], [])
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "one.json").write_bytes(orjson.dumps({"title": "One", "text": "x"}))
    (folder / "two.json").write_bytes(orjson.dumps([{"text": "y"}, {"id": 3, "text": "z"}]))
    produced, left = read_all(RowReader(), folder, uri="folder")
    names = ["folder/one.json", "folder/two.json#row=1", "folder/two.json#id=3"]
    assert ([family.source_uri for family in produced], left) == (names, [])


def test_of_rows_with_one_id_the_last_counts_and_what_says_something_else_is_a_failure(tmp_path: Path) -> None:
    rows = [WHALES, {"id": 8, "text": "x"}, WHALES | {"text": "Later."}, {"id": 8, "text": "x"}]
    produced, left = read_records(RowReader(), tmp_path, rows)
    assert [texts(family) for family in produced] == [["Later."], ["x"]]
    assert refusals(left) == [(1, findings.DUPLICATE_IDS, True), (2, errors.RECORD_SUPERSEDED, False)]
    assert "line 3 has the same id and says something else" in left[0].reason


def test_what_is_no_document_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    rows: list[Record | bytes] = [
        {"id": 1, "name": "no text"},
        {"id": 2, "text": ["a", "list"]},
        b"{broken",
        {"id": 3, "text": "x", "notes": "y" * MAX_CARRIED_BYTES},
        {"id": 4, "text": "x", "tenant_id": ["a"]},
        WHALES,
    ]
    produced, left = read_records(RowReader(), tmp_path, rows)
    assert [texts(family) for family in produced] == [["Whales breathe air."]]
    assert refusals(left) == [
        (1, findings.FIELD_MISSING, True),
        (2, findings.FIELD_MISSING, True),
        (3, findings.JSON_PARSE, True),
        (4, findings.LINE_TOO_LONG, True),
        (5, findings.WRONG_TYPE, True),
    ]
    assert "has no text: none of text, content" in left[0].reason
    assert left[0].reason.endswith("it has name, id. Say which it is: --field text=NAME")


@pytest.mark.parametrize("text", ["", None, " \n\t", "<p> </p>", "\ufeff"])
def test_a_row_without_words_empties_its_family(tmp_path: Path, text: str | None) -> None:
    path = write_lines(tmp_path / "records.jsonl", [{"id": 7, "text": text}])
    left, emptied = RowReader().read(path, "records.jsonl", MAKING)
    assert isinstance(left, LeftOut) and (left.code, left.is_failure) == (errors.SOURCE_EMPTY, False)
    assert emptied == Emptied(keys(read(tmp_path, WHALES))[0])


def test_the_first_field_that_says_something_is_the_text(tmp_path: Path) -> None:
    [family] = read(tmp_path, {"id": 1, "text": "", "abstract": "Short.", "body": "All of it."})
    assert texts(family) == ["All of it."]
    assert family.records[0]["metadata"] == {"id": 1, "text": "", "abstract": "Short."}


PAGE = "<p>Hello <b>there</b>, <a href='../x'>you</a></p>\n<h2>Part</h2>\n<pre># code()</pre>"


def test_links_of_a_page_count_from_its_address(tmp_path: Path) -> None:
    [family] = read(tmp_path, {"url": "https://a.example/b/c.html", "body": PAGE})
    link = {"url": "../x", "link_type": "document", "target_uri": "https://a.example/x"}
    assert family.records[0]["metadata"]["links"] == [link]


def test_nothing_is_lost_and_vectors_do_not_travel(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "text": "[x](y.md)",
        "links": ["theirs"],
        "metadata": {"page": 3, "id": "inner"},
        "parent_id": 9,
        "embedding": [0.5],
        "text_vector": [0.5] * 32,
        "sizes": [7, 8],
        "price": 1.5,
    }
    [family] = read(tmp_path, row)
    [chunk] = family.records
    kept = {"page": 3, "id": 1, "price": 1.5, "sizes": [7, 8]}
    assert chunk["metadata"].items() >= kept.items()
    assert [link["url"] for link in chunk["metadata"]["links"]] == ["y.md"]
    assert chunk["original"] == {"metadata": {"links": ["theirs"], "parent_id": 9}}
    assert b"0.5" not in orjson.dumps(chunk)


def test_long_fields_that_could_be_the_text_do_not_travel(tmp_path: Path) -> None:
    row = {"id": 1, "text": "Words.", "html": "<p>Words.</p>" * 100, "abstract": "Short."}
    [family], left = read_records(RowReader(), tmp_path, [row])
    assert family.records[0]["metadata"] == {"id": 1, "abstract": "Short."}
    assert refusals(left) == [(1, "TEXT_LEFT_OUT", False)]
    assert left[0].reason == "records.jsonl#id=1: html could be its text, too, and text is"


def test_what_says_nothing_covers_nothing(tmp_path: Path) -> None:
    nothing = {"title": None, "tags": None, "date": "", "year": None, "labels": ["bug"], "created_at": "2021-01-02"}
    row = {"id": 1, "text": "# Heading\n\nWords.", **nothing, "metadata": {"author": "Ann", "url": ""}, "author": ""}
    fields = seen(read(tmp_path, row)[0])
    found = (fields["title"], fields["tags"], fields["year"], fields["authors"])
    assert found == ("Heading", ("bug",), 2021, ("Ann",))


def test_a_title_that_gives_way_is_kept(tmp_path: Path) -> None:
    [family] = read(tmp_path, {"id": 1, "text": "x", "name": "f.pdf", "metadata": {"title": "Real"}})
    assert (seen(family)["title"], family.records[0]["metadata"]["name"]) == ("Real", "f.pdf")
    [family] = read(tmp_path, {"id": 1, "text": "x", "name": "n", "title": {"rendered": "T"}})
    assert seen(family)["title"] == "n"
    assert family.records[0]["original"]["metadata"] == {"title": {"rendered": "T"}}


def test_what_could_take_the_square_of_its_length(tmp_path: Path) -> None:
    assert not is_row({"text": "x", "link": "a" * 10**6 + " b"})
    texts = ("<!-- " * 10**5, "<pre>" * 10**5, "<p" * 10**5, "<p>x\n\n" * 10**5, "|" * 10**6)
    assert [is_page(text) for text in texts] == [False, True, False, True, False]


def test_fields_that_are_called_otherwise(tmp_path: Path) -> None:
    row = {
        "Key": 7,
        "post": {"rendered": "<p>Words.</p>", "by": "Ann"},
        "title": {"rendered": "Told"},
        "id": 1,
        "text": "no",
    }
    names = names_with({"id": "key", "text": "post.rendered", "title": "title.rendered"})
    reader = RowReader(names)
    produced, left = read_records(reader, tmp_path, [row, {"text": "no"}])
    assert [family.source_uri for family in produced] == ["records.jsonl#id=7"]
    [chunk] = produced[0].records
    assert chunk["text"] == "Words."
    assert chunk["metadata"] == {"Key": 7, "post": {"by": "Ann"}, "title": "Told", "id": 1, "text": "no"}
    assert refusals(left) == [(2, findings.FIELD_MISSING, True)]
    assert "none of post.rendered is a string" in left[0].reason
    assert reader.canonicalizer != RowReader().canonicalizer


def test_a_number_is_a_tenant_too(tmp_path: Path) -> None:
    for told in ({"tenant_id": 42}, {"Tenant_ID": "42"}, {"tenant_id": None, "metadata": {"tenant_id": "42"}}):
        [family] = read(tmp_path, WHALES | told)
        assert family.tenant == family.records[0]["tenant_id"] == "42"


@pytest.mark.parametrize(
    ("record", "is_known", "is_known_alone"),
    [
        (WHALES, True, True),
        ({"title": "A", "text": "x"}, True, False),
        ({"name": "A", "text": "x"}, True, False),
        ({"url": "https://a.example/", "body": "x"}, True, True),
        ({"path": "a.md", "body": "x"}, True, True),
        ({"link": "/guide/", "text": "Guide"}, False, False),
        ({"text": "x"}, False, False),
        ({"id": 1, "description": "x"}, False, False),
        ({"id": 1, "text": " "}, False, False),
        ({"id": 1, "text": "x", "chunk_id": "c"}, False, False),
    ],
)
def test_what_is_told_to_be_a_row(record: Record, is_known: bool, is_known_alone: bool) -> None:
    assert (is_row(record), is_row(record, is_alone=True)) == (is_known, is_known_alone)


def test_front_matter_says_what_the_row_does_not(tmp_path: Path) -> None:
    text = "---\ntitle: Inner\nauthor: Ann\ndate: 2019-01-02\n---\n\n# Heading\n\nWords."
    fields = seen(read(tmp_path, {"path": "a.md", "content": text})[0])
    assert (fields["title"], fields["authors"], fields["year"], fields["filename"]) == ("Inner", ("Ann",), 2019, "a.md")
    fields = seen(read(tmp_path, {"path": "a.md", "content": text, "title": "Outer", "date": "2021"})[0])
    assert (fields["title"], fields["year"]) == ("Outer", 2021)


@pytest.mark.parametrize(
    ("told", "tags", "year"),
    [
        ({"labels": [{"name": "bug"}, {"name": "ui"}], "created_at": "2021-03-04T05:06:07Z"}, ("bug", "ui"), 2021),
        ({"Tags": "<c++><templates>", "CreationDate": "2009-07-01"}, ("c++", "templates"), 2009),
        ({"tags": "<c++>"}, ("c++",), None),
        ({"categories": "cs.CL, cs.AI", "update_date": "2018"}, ("cs.CL", "cs.AI"), 2018),
        ({"tags": ["sea"], "labels": ["other"], "year": 1999, "created": "2020-01-01"}, ("sea",), 1999),
        ({"tags": "", "date": "03/04/2018", "labels": []}, None, None),
        ({"timestamp": 1700000000}, None, None),
    ],
)
def test_tags_and_years_go_by_other_names_too(
    tmp_path: Path, told: Record, tags: tuple[str, ...] | None, year: int | None
) -> None:
    fields = seen(read(tmp_path, WHALES | told)[0])
    assert (fields.get("tags"), fields.get("year")) == (tags, year)


def test_tenants_are_apart(tmp_path: Path) -> None:
    making = Making(MAKING.created_at, MAKING.producer, tenant="ours")
    rows = [WHALES, WHALES | {"tenant_id": "theirs"}]
    ours, theirs = read(tmp_path, *rows, making=making)
    assert (ours.tenant, theirs.tenant) == ("ours", "theirs")
    assert ours.records[0]["chunk_id"] != theirs.records[0]["chunk_id"]
    assert len(set(keys([ours, theirs]))) == 2


def test_a_changed_text_is_a_new_version_and_a_changed_title_is_none(tmp_path: Path) -> None:
    def ids(row: Record) -> tuple[str, str]:
        [family] = read(tmp_path, row)
        return family.records[0]["document_id"], family.records[0]["chunk_id"]

    assert ids(WHALES) == ids(WHALES | {"title": "Of whales", "price": 2})
    assert ids(WHALES)[0] != ids(WHALES | {"text": "Whales sing."})[0]
