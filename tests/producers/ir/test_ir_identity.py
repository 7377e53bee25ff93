"""The formulas of the canonical document, written out; paths as identity takes them; folders as facets."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.producers.errors import RecordRefused
from chunksink.producers.ir import canonical_path, content_hash, parent_id, record_id, source_folder_token
from chunksink.producers.ir.identity import FOLDER_BYTES, check_identity
from chunksink.sinks.values import facet
from tests.producers.ir.samples import sha


def test_the_formulas_written_out() -> None:
    path, data = "/srv/docs/report.pdf", b"%PDF-1.7"
    digest = hashlib.sha256(data).hexdigest()
    assert content_hash(data) == digest
    assert parent_id(path) == hashlib.sha256(b"/srv/docs/report.pdf").hexdigest()
    assert record_id(path, digest, 3) == hashlib.sha256(f"/srv/docs/report.pdf|{digest}|3".encode()).hexdigest()


def test_golden_values() -> None:
    assert parent_id("/srv/docs/report.pdf") == "a3f26cb34dbcac54b3477b43b3767f35f8916dacf3c5c95c731819eaa4be47ef"
    assert (
        record_id("/srv/docs/report.pdf", "ab" * 32, 0)
        == "9281167c3fd40f27ebb60e9f89754f65c384d322749b5fe8221049da2936d859"
    )


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("/srv/docs/a.pdf", "/srv/docs/a.pdf"),
        ("/srv//docs/./x/../a.pdf", "/srv/docs/a.pdf"),
        ("/srv/Docs/A.pdf", "/srv/Docs/A.pdf"),
        ("C:\\Docs\\.\\A.pdf", "c:\\docs\\a.pdf"),
        ("C:/Docs//A.pdf", "c:\\docs\\a.pdf"),
        ("\\\\Server\\Share\\A.pdf", "\\\\server\\share\\a.pdf"),
        ("docs/a.pdf", "docs/a.pdf"),
    ],
)
def test_one_spelling_for_one_file(path: str, canonical: str) -> None:
    assert canonical_path(path) == canonical
    assert canonical_path(canonical) == canonical


def test_a_windows_path_may_be_normalised_with_either_separator_but_not_with_both() -> None:
    digest = sha(b"x")
    back, forward = "c:\\docs\\a.pdf", "c:/docs/a.pdf"
    for spelling in (back, forward):
        check_identity("C:\\Docs\\A.pdf", sha(f"{spelling}|{digest}|0"), sha(spelling), digest, 0)
    with pytest.raises(RecordRefused, match="id is"):
        check_identity("C:\\Docs\\A.pdf", sha(f"{back}|{digest}|0"), sha(forward), digest, 0)


def test_a_relative_path_proves_nothing() -> None:
    check_identity("docs/a.pdf", sha("anything"), sha("any parent"), sha(b"x"), 0)


def test_a_folder_is_a_token_that_engines_can_filter_by() -> None:
    assert source_folder_token("/srv/docs/a.pdf") == "/srv/docs"
    assert source_folder_token("C:\\docs\\a.pdf") == "C:/docs"
    assert source_folder_token("a.pdf") is None
    deep = "/" + "x" * 600
    one, other = source_folder_token(f"{deep}/one/a.pdf"), source_folder_token(f"{deep}/other/a.pdf")
    assert one != other
    assert one is not None
    assert len(one) == FOLDER_BYTES


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=150, max_size=700))
def test_no_sink_cuts_a_token(folder: str) -> None:
    token = source_folder_token(f"/{folder}/a.pdf")
    assert token is not None
    assert len(token.encode()) <= FOLDER_BYTES
    assert facet(token) == token
