"""The map from chunks to documents, for every producer's spelling of fields."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunksink.chunkbus.canonical import sha256_hex, text_hash
from chunksink.chunkbus.identity import family_key
from chunksink.sinks.conformance.samples import records
from chunksink.sinks.document import FIELDS, Document, Family, document_hash, family_hash, hashes_of_content
from chunksink.sinks.fields import FILTERS, PROJECTION, sink_id
from chunksink.sinks.projection import project_family
from tests.conftest import ROOT, examples
from tests.support.chunks import JUNK, chunk, project


def test_every_field_has_one_rule() -> None:
    assert sorted(rule.name for rule in PROJECTION) == sorted(FIELDS)
    assert all(rule.meaning for rule in PROJECTION)


def test_filters_equal_those_of_the_meilisearch_settings() -> None:
    groups = json.loads((ROOT / "meilisearch-settings.json").read_text())["filterableAttributes"]
    kinds = {
        name: "range" if group["features"]["filter"]["comparison"] else "equal"
        for group in groups
        for name in group["attributePatterns"]
    }
    ours = {name: "range" if kind == "range" else "equal" for name, kind in FILTERS.items()}
    # with this id a search can find every document of a family
    assert kinds == {**ours, "id": "equal", "fields.*": "range"}


def test_minimal_chunk_is_projected() -> None:
    assert project().as_dict() == {
        "id": "c1",
        "chunk_id": "c1",
        "parent_id": sha256_hex(b"docs/a.md"),
        "document_id": "d1",
        "schema_version": "chunks.v1",
        "text": "body",
        "text_hash": text_hash("body"),
        "chunk_index": 0,
        "source_uri": "docs/a.md",
        "path": "docs/a.md",
        "filename": "a.md",
        "extension": "md",
        "file_type": "md",
        "source_folder": "docs",
        "document_hash": project().document_hash,
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # specs/000: span, source and metadata
        (
            {
                "source": {"source_uri": "x", "source_type": "pdf"},
                "span": {"pages": {"page_start": 2, "page_end": 3}, "char_range": {"char_start": 5, "char_end": 9}},
                "metadata": {"title": "T", "authors": ["A"], "year": 1999, "language": "en", "venue": "V"},
                "quality": {"is_truncated": True},
                "tokens": {"count": 7},
            },
            {
                "source_type": "pdf",
                "page_start": 2,
                "page_end": 3,
                "char_start": 5,
                "char_end": 9,
                "title": "T",
                "authors": ("A",),
                "year": 1999,
                "language": "en",
                "content_truncated": True,
                "token_count": 7,
            },
        ),
        (
            {"span": {"page_start": 4, "section": ["1 One", "1.2 Two"], "tei": {"xml_id": "p7"}}},
            {
                "page_start": 4,
                "page_end": 4,
                "section": "1 One > 1.2 Two",
                "headings": ("1 One", "1.2 Two"),
                "anchor": "p7",
            },
        ),
        # specs/001: markdown
        (
            {"ordinal": 3, "headings_path": ["A", "B"], "chunk_path": "A > B", "token_count": 9, "tenant_id": "t"},
            {"chunk_index": 3, "headings": ("A", "B"), "section": "A > B", "token_count": 9, "tenant_id": "t"},
        ),
        (
            {"metadata": {"ordinal": 3, "headings_path": ["A"], "token_count": 9}},
            {"chunk_index": 3, "headings": ("A",), "token_count": 9},
        ),
        # specs/002: the canonical document
        (
            {
                "parent_id": "a" * 64,
                "chunk_index": 1,
                "source": {
                    "path": "/home/me/Report.PDF",
                    "filename": "Report.PDF",
                    "extension": ".PDF",
                    "source_folder": "me",
                    "mime_type": "application/pdf",
                    "file_type": "document",
                    "size_bytes": 12,
                    "modified_at": "2024-01-01T00:00:00Z",
                },
                "content": {"title": "T", "language": "de", "tags": ["x"], "content_truncated": False},
                "locator": {
                    "page_number": 5,
                    "page_end": 6,
                    "speaker": None,
                    "timestamp_start": 1,
                    "timestamp_end": 2.5,
                },
            },
            {
                "parent_id": "a" * 64,
                "chunk_index": 1,
                "path": "/home/me/Report.PDF",
                "filename": "Report.PDF",
                "extension": "pdf",
                "source_folder": "me",
                "mime_type": "application/pdf",
                "file_type": "document",
                "size_bytes": 12,
                "modified_at_epoch": 1704067200,
                "title": "T",
                "language": "de",
                "tags": ("x",),
                "content_truncated": False,
                "page_start": 5,
                "page_end": 6,
                "timestamp_start": 1.0,
                "timestamp_end": 2.5,
                "speaker": None,
            },
        ),
        # specs/003: structural chunks
        (
            {
                "source": {"path": "policies/data/retention.pdf", "folder": "policies/data", "type": "policy"},
                "index": 1,
                "neighbors": ["chunk_0480", "chunk_0482"],
            },
            {
                "path": "policies/data/retention.pdf",
                "source_folder": "policies/data",
                "source_type": "policy",
                "chunk_index": 1,
            },
        ),
        # specs/004: recorded events
        (
            {
                "start_offset": {"segment_id": 2, "ordinal": 7, "byte_offset": 512},
                "end_offset": {"segment_id": 2, "ordinal": 9, "byte_offset": 900},
                "occurred_at_end_ms": 1704067200999,
            },
            {"start_offset": "2/7/512", "end_offset": "2/9/900", "modified_at_epoch": 1704067200},
        ),
        # names
        (
            {"provenance": {"source_uri": "https://example.org/a%20b/c.html?q=1#f"}},
            {"path": None, "filename": "c.html", "extension": "html", "source_folder": None},
        ),
        (
            {"provenance": {"source_uri": "file:///C:/My%20Docs/x.TXT"}},
            {"path": "C:/My Docs/x.TXT", "source_folder": "C:/My Docs", "extension": "txt"},
        ),
        (
            {"provenance": {"source_uri": r"C:\data\x.txt"}},
            {"path": r"C:\data\x.txt", "filename": "x.txt", "source_folder": "C:/data"},
        ),
        ({"provenance": {"source_uri": "doi:10.1000/182"}}, {"path": None, "filename": None}),
        ({"provenance": {"source_uri": "https://[bad"}}, {"path": None, "filename": None}),
        ({"provenance": {"source_uri": "notes/.bashrc"}}, {"filename": ".bashrc", "extension": None}),
        ({"metadata": {"keywords": "a, b", "author": {"name": "Ada"}}}, {"tags": ("a", "b"), "authors": ("Ada",)}),
    ],
)
def test_fields_are_projected(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    document = project(**fields)
    assert {name: getattr(document, name) for name in expected} == expected


def test_value_of_the_wrong_type_falls_back_to_the_next_path() -> None:
    document = project(
        title=["no"], metadata={"title": "yes", "year": "soon", "tags": 5, "publication_date": "2001-02"}
    )
    assert (document.title, document.year, document.tags) == ("yes", 2001, ())


PATHS = sorted({path for rule in PROJECTION for path in rule.paths} - {"schema_version", "text"})
ROOTS = sorted({path.split(".")[0] for path in PATHS} - {"provenance"})


@given(st.dictionaries(st.sampled_from(ROOTS), JUNK), st.dictionaries(st.sampled_from(PATHS), JUNK))
@settings(max_examples=examples(600))
def test_unexpected_members_raise_nothing(fields: dict[str, Any], at_paths: dict[str, Any]) -> None:
    for path, value in at_paths.items():
        *groups, name = path.split(".")
        place = fields
        for group in groups:
            if not isinstance(place.get(group), dict):
                place[group] = {}
            place = place[group]
        place[name] = value
    document = project(**fields)
    assert Document.from_fields(json.loads(json.dumps(document.as_dict()))) == document


# --- identity -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk_id", ["c-1_Z", "x" * 511, "H-upper"])
def test_ids_that_every_engine_accepts_are_kept(chunk_id: str) -> None:
    assert sink_id(chunk_id) == chunk_id


@pytest.mark.parametrize("chunk_id", ["", "x" * 512, "a.b", "a b", "é", "h-1", "h-" + "0" * 64, "a\n"])
def test_other_ids_are_hashed(chunk_id: str) -> None:
    assert sink_id(chunk_id) == "h-" + sha256_hex(chunk_id.encode())


def test_ids_are_never_shared() -> None:
    some = [f"chunk/{number}" for number in range(50_000)] + [f"chunk_{number}" for number in range(50_000)]
    mapped = [sink_id(one) for one in some]
    assert len(set(mapped)) == 100_000
    assert not {sink_id(one) for one in mapped[:1000]} & set(mapped[:1000]), (
        "a hashed id taken as a chunk_id is another"
    )


def test_tenants_have_their_own_families() -> None:
    keys = [project(**fields).parent_id for fields in ({}, {"tenant_id": "a"}, {"metadata": {"tenant_id": "b"}})]
    assert len(set(keys)) == 3
    assert keys[1] == family_key(keys[0], "a")
    assert project(tenant_id="a").tenant_key == sha256_hex(b"a")


# --- families -------------------------------------------------------------------------------------------------


def test_families_are_ordered_and_linked() -> None:
    chunks = records("a", ["zero", "one", "two"])
    documents = project_family([chunks[2], chunks[0], chunks[1]])
    assert [d.text for d in documents] == ["zero", "one", "two"]
    assert [d.previous_id for d in documents] == [None, documents[0].id, documents[1].id]
    assert [d.next_id for d in documents] == [documents[1].id, documents[2].id, None]
    assert documents == project_family(chunks)
    assert project_family([]) == []


def test_order_without_an_index_is_by_place_then_id() -> None:
    chunks = [
        chunk(chunk_id="a", text="last", span={"page_start": 2}),
        chunk(chunk_id="b", text="second", span={"page_start": 2, "char_start": 4}),
        chunk(chunk_id="c", text="first", span={"page_start": 1}),
    ]
    documents = project_family(chunks)
    assert [(d.text, d.chunk_index) for d in documents] == [("first", 0), ("second", 1), ("last", 2)]


@pytest.mark.parametrize("name", ["guide-{}", "guide.md#{}", "Teil {} der Größe", "{}.9"])
def test_order_without_index_and_place_is_by_the_numbers_of_the_id(name: str) -> None:
    """Some of these ids are hashed for the engines."""
    documents = project_family([chunk(chunk_id=name.format(number), text=str(number)) for number in (10, 9, 100, 1)])
    assert [d.text for d in documents] == ["1", "9", "10", "100"]


def test_mixed_families_are_refused() -> None:
    with pytest.raises(ValueError, match="got 2"):
        project_family(records("a", ["x"]) + records("b", ["y"]))
    with pytest.raises(ValueError, match="one parent_id"):
        Family([*project_family(records("a", ["x"])), *project_family(records("b", ["y"]))])


# --- hashes ---------------------------------------------------------------------------------------------------

BASE = {"chunk_index": 0, "metadata": {"title": "T"}}


def hashed(**fields: Any) -> str:
    return project(**{**BASE, **fields}).document_hash


@pytest.mark.parametrize(
    ("fields", "changed"),
    [
        ({"created_at": "2031-01-01T00:00:00Z"}, False),
        ({"producer": {"name": "p", "version": "2", "run_id": "r"}}, False),
        ({"hashes": {"text_hash": "sha256:" + "0" * 64}}, False),
        ({"canonicalization": {"version": 2}}, False),
        ({"something": "that no sink stores"}, False),
        ({"provenance": {"source_checksum": "sha256:1"}}, False),
        ({"metadata": {"title": "T", "unknown": 1}}, True),
        ({"metadata": {"title": "T", "unknown": {"a": 1}}}, False),
        # The index has ids, too. With old ones it would differ from the index that a rebuild makes.
        ({"chunk_id": "c2"}, True),
        ({"document_id": "d2"}, True),
        ({"parent_id": "b" * 64}, True),
        ({"tenant_id": "t"}, True),
        ({"text": "other"}, True),
        ({"metadata": {"title": "U"}}, True),
        ({"chunk_index": 1}, True),
        ({"chunk_count": 2}, False),
        ({"tags": ["x"]}, True),
        ({"span": {"page_start": 0}}, True),
        ({"content_truncated": False}, True),
        ({"source": {"path": "docs/./a.md"}}, True),
    ],
)
def test_hash_changes_with_the_stored_content(fields: dict[str, Any], changed: bool) -> None:
    assert (hashed(**fields) != hashed()) == changed


def test_hash_of_a_document_equals_that_of_the_stored_one() -> None:
    """So a scan can compute it again. If the text is not stored, its hash is used."""
    document = project(**BASE)
    assert document_hash(document.as_dict()) == document.document_hash
    assert hashes_of_content(document) == (document.document_hash, document.text_hash)
    without = msgspec.structs.replace(document, text="", document_hash="x")
    assert document_hash(without.as_dict()) == document.document_hash
    tampered = msgspec.structs.replace(document, text="other")
    assert hashes_of_content(tampered) != (document.document_hash, document.text_hash)


def test_append_changes_the_last_document_only() -> None:
    """Only that document has a new neighbour. `chunk_count`, which chunkers write into every chunk, is not stored."""
    before, after = (project_family(records("a", [f"text {n}" for n in range(size)])) for size in (5, 7))
    assert [one == other for one, other in zip(before, after[:5], strict=True)] == [True] * 4 + [False]


def test_hash_of_a_family_ignores_document_order() -> None:
    hashes = [document.document_hash for document in project_family(records("a", ["x", "y"]))]
    assert family_hash(hashes) == family_hash(reversed(hashes)) != family_hash(hashes[:1])
