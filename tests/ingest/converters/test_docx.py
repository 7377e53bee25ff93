"""DOCX keeps its text and headings, whatever they are written with, and reports what it leaves out."""

from __future__ import annotations

import pytest

from chunksink.ingest.formats.office import DocxFormat
from tests.ingest.converters.files import docx, paragraph, properties, relations, run, style
from tests.ingest.converters.support import Reading, read

pytest.importorskip("mammoth")
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STYLES = (
    style("berschrift1", "heading 1")
    + style("Kapitel", "Mein Kapitel", '<w:basedOn w:val="berschrift2"/>')
    + style("berschrift2", "Heading 2")
    + style("Circle", "Circle", '<w:basedOn w:val="Circle"/>')
    + style("Outlined", "Outlined", '<w:pPr><w:outlineLvl w:val="2"/></w:pPr>')
    + style("Titel", "Title")
)


def word(body: str, **parts: str) -> Reading:
    return read(DocxFormat(), docx(body, parts, STYLES), "a.docx")


def styled(text: str, name: str) -> str:
    return paragraph(text, f'<w:pStyle w:val="{name}"/>')


def test_headings_follow_styles_their_bases_and_outline_levels() -> None:
    body = (
        styled("One", "berschrift1")
        + styled("Two", "Kapitel")
        + styled("Three", "Outlined")
        + paragraph("Direct", '<w:outlineLvl w:val="1"/>')
        + paragraph("None", '<w:outlineLvl w:val="9"/>')
        + styled("Circle", "Circle")
    )
    assert word(body).headings[-1] == ["One", "Direct"]
    assert ["One", "Two", "Three"] in [record["metadata"]["headings_path"] for record in word(body).records]
    assert "None\n\nCircle" in word(body).text


def test_metadata_is_what_file_states_else_its_title() -> None:
    stated = word(paragraph("Text."), **properties(title="Plan", creator="A. &lt;C&gt;; Bob", language="de"))
    assert (stated.metadata["title"], stated.metadata["language"]) == ("Plan", "de")
    assert stated.metadata["authors"] == ["A. <C>", "Bob"]
    titled = word(styled("The title", "Titel") + paragraph("Text."))
    assert (titled.metadata["title"], titled.metadata.get("anchor")) == ("The title", None)


def test_tables_lists_and_notes_are_kept() -> None:
    def cell(text: str, more: str = "") -> str:
        return f"<w:tc><w:tcPr>{more}</w:tcPr>{paragraph(text)}</w:tc>"

    merged = cell("merged", '<w:gridSpan w:val="2"/>')
    rows = (cell("Head") + cell("Size"), merged, cell("a|b") + cell("last"))
    table = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
    note = f'<w:p>{run("Claim")}<w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    notes = f'<w:n xmlns:w="{WORD}"><w:footnote w:id="2">{paragraph("the reason")}</w:footnote></w:n>'
    refers = {"word/_rels/document.xml.rels": relations(("f", "footnotes", "footnotes.xml"))}
    found = word(table + note, **refers, **{"word/footnotes.xml": notes})
    assert "| Head | Size |\n| --- | --- |\n| merged | |\n| a\\|b | last |" in found.text
    assert "Claim[1]" in found.text.replace("\\", "")
    assert ("the reason" in found.text, "↑" in found.text) == (True, False)
    assert found.links == [], "bookmarks are no places that a link could lead to"


@pytest.mark.parametrize(
    "inner",
    [
        f"<w:fldSimple w:instr='REF x'>{run('kept')}</w:fldSimple>",
        f"<w:ins>{run('kept')}</w:ins><w:del>{run('gone')}</w:del>",
        f"<w:sdt><w:sdtContent>{run('kept')}</w:sdtContent></w:sdt>",
        f"<w:r><mc:AlternateContent><mc:Choice>{run('kept')}</mc:Choice></mc:AlternateContent></w:r>",
        "<w:r><mc:AlternateContent><mc:Choice><w:drawing><wps:txbx><w:txbxContent>{0}</w:txbxContent></wps:txbx>"
        "</w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox><w:txbxContent>{0}</w:txbxContent></v:textbox>"
        "</w:pict></mc:Fallback></mc:AlternateContent></w:r>".format(paragraph("kept")),
    ],
)
def test_text_is_kept_once_whatever_holds_it(inner: str) -> None:
    found = word(f"<w:p>{run('before ')}{inner}{run(' after')}</w:p>")
    assert sorted(found.text.split()) == ["after", "before", "kept"]


def test_links_are_metadata() -> None:
    target = 'Target="https://ex.com/" TargetMode="External"'
    parts = {"word/_rels/document.xml.rels": relations(("r9", "hyperlink", "X")).replace('Target="X"', target)}
    found = word(f'<w:p><w:hyperlink r:id="r9">{run("there")}</w:hyperlink>{run(" after")}</w:p>', **parts)
    assert (found.text, found.links) == ("there after", ["https://ex.com/"])


@pytest.mark.parametrize(
    ("name", "text", "codes"),
    [("comments", "Wrong!", ["PARTS_LEFT_OUT"]), ("header2", "For us", ["PARTS_LEFT_OUT"]), ("footer1", "3", [])],
)
def test_what_is_beside_text_is_reported(name: str, text: str, codes: list[str]) -> None:
    found = word(paragraph("Text."), **{f"word/{name}.xml": f'<w:part xmlns:w="{WORD}">{paragraph(text)}</w:part>'})
    assert (found.text, found.codes) == ("Text.", codes)
