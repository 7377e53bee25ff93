"""Each row of JSON or CSV becomes a family: names, texts, and metadata of the chunks."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import sha256_hex
from chunksink.chunkbus.chunk import Record
from chunksink.ingest import codes
from chunksink.ingest.formats.markdown.policy import V2
from chunksink.ingest.formats.registry import Match
from chunksink.ingest.formats.rows import RowsFormat
from chunksink.ingest.model import Empty
from chunksink.ingest.record_documents import MAX_METADATA_BYTES
from tests.ingest.bench import Bench
from tests.ingest.reading import families, fields_of, names, notices, texts
from tests.ingest.rows.samples import FORMAT, WHALES, chunks_of, read_file, read_rows


def test_row_is_a_document_of_its_own(tmp_path: Path) -> None:
    long = "\n\n".join(f"## Part {n}\n\n" + "Some words are here. " * 20 for n in range(3))
    about = {"author": "Ann", "date": "2020-02-03", "tags": ["sea", "air"]}
    row = {"_id": "d/1", "headline": "Parts", "body": long, **about}
    first, second = families(read_rows(tmp_path, row, WHALES))
    assert [chunk["metadata"]["title"] for chunk in first] == ["Parts"] * 3
    assert [chunk["chunk_index"] for chunk in first] == [0, 1, 2]
    assert [chunk["text"] for chunk in second] == ["Whales breathe air."]
    fields = fields_of(chunks_of(tmp_path, row))
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
    assert {name: fields.get(name) for name in expected} == expected


def test_by_v2_an_edit_keeps_the_ids_of_other_chunks(tmp_path: Path) -> None:
    format_ = FORMAT.with_policy(V2)
    rows = [{"id": 7, "text": f"# A\n\nTea.\n\n# B\n\n{words}"} for words in ("Coffee.", "Cocoa.")]
    before, after = (chunks_of(tmp_path, row, format_=format_, tenant="acme") for row in rows)
    assert [old["chunk_id"] == new["chunk_id"] for old, new in zip(before, after, strict=True)] == [True, False]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"_id": {"$oid": "5f"}, "text": "x"}, "records.jsonl#id=5f"),
        ({"id": "", "title": "x", "text": "x"}, "records.jsonl#line=1"),
        ({"id": 7, "url": "https://a.example/x", "text": "x"}, "https://a.example/x"),
        ({"path": "notes/a.md", "content": "x"}, "notes/a.md"),
        ({"ID": 7, "Text": "x"}, "records.jsonl#id=7"),
        ({"url": None, "text": "x", "metadata": {"url": "https://a.example/x"}}, "https://a.example/x"),
        ({"id": 4.0, "text": "x"}, "records.jsonl#id=4"),
        ({"id": " ", "uuid": " u ", "text": "x"}, "records.jsonl#id=u"),
        ({"url": "n/a", "text": "x"}, "records.jsonl#line=1"),
    ],
)
def test_name_is_the_address_else_the_id_else_the_position(tmp_path: Path, row: Record, name: str) -> None:
    assert fields_of(chunks_of(tmp_path, row))["source_uri"] == name


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([{"text": "x"}, {"text": "y"}], ["a.json#row=1", "a.json#row=2"]),
        ({"total": 2, "data": [{"id": 1, "text": "x"}, {"id": 2, "text": "y"}]}, ["a.json#id=1", "a.json#id=2"]),
    ],
)
def test_arrays_and_lists_within_an_object_are_rows(tmp_path: Path, content: Any, expected: list[str]) -> None:
    items = read_file(tmp_path / "a.json", orjson.dumps(content))
    assert (names(items), notices(items)) == (expected, [])


@pytest.mark.parametrize(("later", "found"), [("Later.", {"a.jsonl#id=7": ["Later."]}), ("", {})])
def test_last_row_of_an_id_counts_and_other_content_is_a_failure(
    bench: Bench, later: str, found: dict[str, list[str]]
) -> None:
    eight = {"id": 8, "text": "x"}
    bench.write("a.jsonl", [WHALES, eight, eight])
    assert bench.ingest().failed == 0
    bench.write("a.jsonl", [WHALES, eight, WHALES | {"title": "", "text": later}, eight])
    report = bench.ingest()
    assert [(one.code, one.line) for one in report.failures] == [(findings.DUPLICATE_IDS, 3 if later else None)]
    assert report.left_out.get(codes.RECORD_SUPERSEDED) == 1
    assert bench.texts() == {f"docs/{name}": texts for name, texts in (found | {"a.jsonl#id=8": ["x"]}).items()}


@pytest.mark.parametrize(
    ("older", "refused", "code"),
    [
        ("Older.", {"text": "x", "notes": "y" * MAX_METADATA_BYTES}, findings.LINE_TOO_LONG),
        ("", {"text": "x", "notes": "y" * MAX_METADATA_BYTES}, findings.LINE_TOO_LONG),
        ("Older.", {"html": "<b>" * 20_000 + "x"}, codes.CHUNKING_FAILED),
    ],
)
def test_refused_last_row_of_an_id_keeps_the_former_chunks(
    bench: Bench, older: str, refused: Record, code: str
) -> None:
    bench.write("a.jsonl", [{"id": 7, "text": "Good."}])
    bench.ingest()
    bench.write("a.jsonl", [{"id": 7, "text": older}, {"id": 7, **refused}])
    for prune in (False, True):
        report = bench.ingest(prune=prune, checksum=True)
        assert bench.texts() == {"docs/a.jsonl#id=7": ["Good."]}
    bench.write("a.jsonl", [{"id": 7, **refused}, {"id": 7, "text": "New."}])
    report = bench.ingest()
    assert [(one.code, one.line) for one in report.failures] == [(code, 1)]
    assert bench.texts() == {"docs/a.jsonl#id=7": ["New."]}


def test_bad_row_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    rows: list[Record | bytes] = [
        {"id": 1, "name": "no text"},
        {"id": 2, "text": ["a", "list"]},
        b"{broken",
        {"id": 3, "text": "x", "notes": "y" * MAX_METADATA_BYTES},
        {"id": 4, "text": "x", "tenant_id": ["a"]},
        {"id": 5, "text": "x", "tenant_id": True},
        {"id": 6, "text": "x", "metadata": {"tenant_id": 1.5}},
        WHALES,
    ]
    items = read_rows(tmp_path, *rows)
    assert texts(items) == [["Whales breathe air."]]
    assert sorted(notices(items)) == [
        (1, findings.FIELD_MISSING, True),
        (2, findings.FIELD_MISSING, True),
        (3, findings.JSON_PARSE, True),
        (4, findings.LINE_TOO_LONG, True),
        *((line, findings.WRONG_TYPE, True) for line in (5, 6, 7)),
    ]


@pytest.mark.parametrize("text", ["", None, " \n\t", "\ufeff"])
def test_row_without_words_empties_its_family(tmp_path: Path, text: str | None) -> None:
    items = read_rows(tmp_path, {"id": 7, "text": text})
    assert notices(items) == [(1, codes.SOURCE_EMPTY, False)]
    assert [item.family for item in items if isinstance(item, Empty)] == [sha256_hex(b"records.jsonl#id=7")]


@pytest.mark.parametrize("about", [{"text": ""}, {"text": None}, {"text": "\ufeff"}, {"html": "<p><img src=x></p>"}])
def test_title_is_the_text_of_a_row_without_words(tmp_path: Path, about: Record) -> None:
    before, after = (chunks_of(tmp_path, {"id": 7, "title": title} | about) for title in ("Sync fails", "Sync stops"))
    assert [chunk["text"] for chunk in before + after] == ["Sync fails", "Sync stops"]
    assert before[0]["parent_id"] == after[0]["parent_id"]
    assert before[0]["chunk_id"] != after[0]["chunk_id"]


PAGE = "<p>Hello <b>there</b>, <a href='../x'>you</a></p>\n<h2>Part</h2>\n<pre># code()</pre>"


@pytest.mark.parametrize(
    ("row", "is_html"),
    [
        ({"id": 1, "HTML": PAGE, "body": "", "abstract": "Short."}, True),
        ({"id": 1, "html": "Page.", "body": PAGE}, False),
        ({"path": "a/b.html", "body": PAGE}, True),
        ({"url": "https://a.example/b.html", "body": PAGE}, False),
        ({"id": 1, "body": PAGE}, False),
    ],
)
def test_html_is_recognised_by_the_name_of_field_or_file(tmp_path: Path, row: Record, is_html: bool) -> None:
    assert ("**there**" in chunks_of(tmp_path, row)[0]["text"]) is is_html


@pytest.mark.parametrize("fields", [{"html": "content.rendered"}, {"html": "content.rendered", "text": "plain"}])
def test_named_html_is_read_as_html_and_its_title_is_unescaped(tmp_path: Path, fields: dict[str, str]) -> None:
    format_ = RowsFormat(fields=fields | {"title": "title.rendered"})
    row = {"content": {"rendered": PAGE}, "title": {"rendered": "Q&amp;A &#8211; R&#038;D"}, "text": "no"}
    items = read_rows(tmp_path, row, row | {"plain": "Q&amp;A"}, format_=format_)
    first, second = (chunks[0] for chunks in families(items))
    assert (first["text"].splitlines()[0], first["metadata"]["title"]) == ("Hello **there**, you", "Q&A – R&D")
    assert (second["text"] == "Q&amp;A") is ("text" in fields)
    assert (format_.match(row), format_.match({"text": "x"})) == (Match.POSSIBLE, Match.NO)


def test_path_is_the_file_of_rows_with_an_id_even_if_they_have_a_web_address(tmp_path: Path) -> None:
    web, path = {"url": "https://a.example/b.md"}, {"url": "docs/b.md"}
    found = [fields_of(chunks_of(tmp_path, {"text": "x"} | row)) for row in ({"id": 1} | web, web, {"id": 1} | path)]
    assert [(one.get("path"), one["filename"]) for one in found] == [
        ("records.jsonl", "1"),
        (None, "b.md"),
        ("docs/b.md", "1"),
    ]
    assert [one["source_uri"] for one in found] == [web["url"], web["url"], path["url"]]


def test_other_fields_are_kept_except_vectors(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "text": "[x](y.md)",
        "links": ["theirs"],
        "metadata": {"page": 3, "id": "inner"},
        "parent_id": 9,
        "embedding": [0.5],
        "text_vector": [0.5] * 32,
        "sizes": [7, 8],
    }
    (chunk,) = chunks_of(tmp_path, row)
    assert chunk["metadata"].items() >= {"page": 3, "id": 1, "sizes": [7, 8]}.items()
    assert [link["url"] for link in chunk["metadata"]["links"]] == ["y.md"]
    assert chunk["original"] == {"metadata": {"links": ["theirs"], "parent_id": 9}}
    assert b"0.5" not in orjson.dumps(chunk)


def test_other_long_texts_are_reported_and_dropped(tmp_path: Path) -> None:
    items = read_rows(tmp_path, {"id": 1, "text": "Words.", "html": "<p>Words.</p>" * 100, "abstract": "Short."})
    assert families(items)[0][0]["metadata"] == {"id": 1, "abstract": "Short."}
    assert notices(items) == [(1, codes.TEXT_LEFT_OUT, False)]


def test_field_without_a_value_hides_nothing(tmp_path: Path) -> None:
    nothing = {"title": None, "tags": None, "date": "", "year": None, "labels": ["bug"], "created_at": "2021-01-02"}
    row = {"id": 1, "text": "# Heading\n\nWords.", **nothing, "metadata": {"author": "Ann", "url": ""}, "author": ""}
    fields = fields_of(chunks_of(tmp_path, row))
    found = (fields["title"], fields["tags"], fields["year"], fields["authors"])
    assert found == ("Heading", ("bug",), 2021, ("Ann",))


def test_text_in_parts_is_joined_as_in_exports_of_chats(tmp_path: Path) -> None:
    parts = ["See ", {"type": "link", "text": "https://example.org"}, " today."]
    [chunk] = chunks_of(tmp_path, {"id": 1, "type": "message", "text": parts})
    assert chunk["text"] == "See https://example.org today."
    blocks = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    [chunk] = chunks_of(tmp_path, {"id": 1, "content": blocks})
    assert chunk["text"] == "One.\n\nTwo."
    refused = read_rows(tmp_path, {"id": 1, "text": ["See ", {"type": "photo"}]})
    assert [code for _, code, _ in notices(refused)] == [findings.FIELD_MISSING]


def test_given_names_replace_the_usual_ones(tmp_path: Path) -> None:
    row = {"Key": 7, "post": {"rendered": "Words.", "by": "Ann"}, "title": {"rendered": "Shown"}, "id": 1, "text": "no"}
    format_ = RowsFormat(fields={"id": "key", "text": "post.rendered", "title": "title.rendered"})
    items = read_rows(tmp_path, row, {"text": "no"}, format_=format_)
    assert names(items) == ["records.jsonl#id=7"]
    (chunk,) = families(items)[0]
    assert chunk["text"] == "Words."
    assert chunk["metadata"] == {"Key": 7, "post": {"by": "Ann"}, "title": "Shown", "id": 1, "text": "no"}
    assert notices(items) == [(2, findings.FIELD_MISSING, True)]
    assert format_.canonicalizer != FORMAT.canonicalizer
    assert (format_.match(row), format_.match(WHALES)) == (Match.POSSIBLE, Match.NO)


@pytest.mark.promise(11)
def test_tenants_are_apart(tmp_path: Path) -> None:
    ours = chunks_of(tmp_path, WHALES, tenant="ours")
    theirs = chunks_of(tmp_path, WHALES | {"tenant_id": "theirs"})
    assert (ours[0]["tenant_id"], theirs[0]["tenant_id"]) == ("ours", "theirs")
    assert ours[0]["chunk_id"] != theirs[0]["chunk_id"]
    about = {"tenant_id": None, "metadata": {"tenant_id": "inner"}}
    assert chunks_of(tmp_path, WHALES | about)[0]["tenant_id"] == "inner"


@pytest.mark.promise(11)
def test_tenant_may_be_an_integer(tmp_path: Path) -> None:
    for about in (lambda tenant: {"tenant_id": tenant}, lambda tenant: {"metadata": {"tenant_id": tenant}}):
        number, text = (chunks_of(tmp_path, WHALES | about(tenant)) for tenant in (42, "42"))
        assert number[0]["tenant_id"] == "42"
        assert number == text


@pytest.mark.parametrize(
    ("record", "is_known", "is_known_alone"),
    [
        (WHALES, True, True),
        ({"title": "A", "text": "x"}, True, False),
        ({"id": 1, "title": "A", "text": ""}, True, True),
        ({"title": "A", "text": None}, True, False),
        ({"id": 1, "text": ""}, False, False),
        ({"id": 1, "title": "A", "text": ["x"]}, False, False),
        ({"link": "/guide/", "text": "Guide"}, False, False),
        ({"id": 1, "description": "x"}, False, False),
        ({"id": 1, "text": "x", "chunk_id": "c"}, False, False),
        ({"text": "x", "link": "a" * 10**6 + " b"}, False, False),
    ],
)
def test_match_is_by_text_and_name(record: Record, is_known: bool, is_known_alone: bool) -> None:
    matches = (FORMAT.match(record), FORMAT.match(record, is_alone=True))
    assert matches == (Match(int(is_known)), Match(int(is_known_alone)))


def test_front_matter_counts_if_the_row_has_no_such_field(tmp_path: Path) -> None:
    text = "---\ntitle: Inner\nauthor: Ann\ndate: 2019-01-02\n---\n\n# Heading\n\nWords."
    fields = fields_of(chunks_of(tmp_path, {"path": "a.md", "content": text}))
    assert (fields["title"], fields["authors"], fields["year"], fields["filename"]) == ("Inner", ("Ann",), 2019, "a.md")
    fields = fields_of(chunks_of(tmp_path, {"path": "a.md", "content": text, "title": "Outer", "date": "2021"}))
    assert (fields["title"], fields["year"]) == ("Outer", 2021)


@pytest.mark.parametrize(
    ("about", "tags", "year"),
    [
        ({"labels": [{"name": "bug"}, {"name": "ui"}], "created_at": "2021-03-04T05:06:07Z"}, ("bug", "ui"), 2021),
        ({"categories": "cs.CL, cs.AI", "update_date": "2018"}, ("cs.CL", "cs.AI"), 2018),
        ({"tags": ["sea"], "labels": ["other"], "year": 1999, "created": "2020-01-01"}, ("sea",), 1999),
        ({"tags": "", "date": "03/04/2018", "labels": []}, None, None),
    ],
)
def test_tags_and_dates_have_several_names(
    tmp_path: Path, about: Record, tags: tuple[str, ...] | None, year: int | None
) -> None:
    fields = fields_of(chunks_of(tmp_path, WHALES | about))
    assert (fields.get("tags"), fields.get("year")) == (tags, year)


# -- CSV and TSV: their header, cells of several lines, and what breaks them
