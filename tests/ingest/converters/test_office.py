"""Office documents: slides, sheets and books have a section each, DOCX its headings; what is left out is reported."""

from datetime import date, datetime
from io import BytesIO
from typing import Any

import pytest

from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.office import DocxFormat, EpubFormat, PptxFormat, XlsxFormat
from tests.ingest.converters.files import (
    docx,
    epub,
    paragraph,
    pptx,
    properties,
    relations,
    run,
    shape,
    slide_part,
    slide_table,
    style,
)
from tests.ingest.converters.support import Reading, page, read

NUMBER = '<a:p><a:fld type="slidenum"><a:t>17</a:t></a:fld></a:p>'


def slides(data: bytes) -> Reading:
    return read(PptxFormat(), data, "a.pptx")


def test_slides_are_sections_in_order_with_tables_and_notes() -> None:
    notes = {
        "ppt/slides/_rels/slide1.xml.rels": relations(
            ("n", "notesSlide", "../notesSlides/notesSlide1.xml"), ("c", "chart", "../charts/chart1.xml")
        ),
        "ppt/notesSlides/notesSlide1.xml": slide_part(shape("Say hello")),
        "ppt/comments/comment1.xml": "<p>Wrong!</p>",
        "ppt/charts/chart1.xml": "<chart><ser><v>North</v><v>12</v></ser></chart>",
    }
    first = (
        shape("Aims", role="title") + shape("# first", "second", role="body") + slide_table(("Name", "b"), ("a|b", ""))
    )
    second = f"<p:grpSp>{shape('grouped')}</p:grpSp>"
    third = "<p:pic><p:nvPicPr><p:cNvPr descr='A barn'/></p:nvPicPr></p:pic><p:pic/>"
    found = slides(pptx(first, second, third + f"<p:sp>{NUMBER}</p:sp>", parts={**notes, **properties(title="Talk")}))
    assert found.headings == [["Aims"], ["Aims"], ["Aims"], ["Slide 2"], ["Slide 3"]]
    assert [record["locator"]["slide_number"] for record in found.records] == [1, 1, 1, 2, 3]
    assert [record["metadata"]["kind"] for record in found.records][:3] == ["prose", "table", "prose"]
    assert "Aims\n\n# first\nsecond\n\n| Name | b |\n| --- | --- |\n| a\\|b |  |" in found.text
    assert "North 12\n\nNotes:\nSay hello" in found.text
    assert found.text.endswith("Slide 3\n\nA barn")
    assert (found.metadata["title"], found.codes) == ("Talk", ["PARTS_LEFT_OUT"])
    assert found.notices[0].reason == "left out: comments (1), pictures without text (1)"


@pytest.fixture
def book() -> Any:
    return pytest.importorskip("openpyxl").Workbook()


def sheets(book: Any) -> Reading:
    file = BytesIO()
    book.save(file)
    return read(XlsxFormat(), file.getvalue(), "a.xlsx")


def test_sheets_are_sections_of_tables(book: Any) -> None:
    sheet = book.active
    sheet.title = "Sales"
    sheet.append(["Name", "Count", "Day"])
    for number in range(120):
        sheet.append([f"row{number}", number / 4, date(2024, 5, 1)])
    sheet.append([])
    sheet["F125"], sheet["G125"] = "second | table", datetime(2024, 5, 1, 12, 30)
    hidden = book.create_sheet("Secret")
    hidden.sheet_state = "hidden"
    hidden["B2"] = "merged\nwords"
    hidden.merge_cells("B2:D4")
    found = sheets(book)
    assert {path[0] for path in found.headings} == {"Sales", "Secret"}
    assert {record["locator"]["sheet_name"] for record in found.records} == {"Sales", "Secret"}
    assert all(f"| row{number} | {number / 4:g} | 2024-05-01 |" in found.text for number in range(120))
    assert "| second \\| table | 2024-05-01 12:30:00 |" in found.text
    assert "| merged words |" in found.text
    assert (later := [record for record in found.records if "table_header" in record["metadata"]])
    assert all(record["text"].startswith("| Name | Count | Day |\n| --- |") for record in later)


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (1069, "00000", "01069"),
        (-5, "000", "-005"),
        (12.5, "000", "12.5"),
        (0.075, "0.0%", "7.5%"),
        (0.125, "0%", "13%"),
        (0.19, "0.00 %", "19.00 %"),
        (1e300, "0%", "1e+300"),
        (7, "0", "7"),
        (1234567, "#,##0", "1234567"),
        (3.5, '#,##0.00 "€"', "3.5"),
    ],
)
def test_number_is_shown_with_leading_zeros_or_as_percentage(value: float, form: str, shown: str, book: Any) -> None:
    book.active.append(["x", value])
    book.active["B1"].number_format = form
    assert f"| x | {shown} |" in sheets(book).text


def test_rows_beyond_limit_are_counted(book: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chunksink.ingest.formats.office._MAX_SIZE", 10 * 70)
    for number in range(15):
        book.active.append([f"row{number:03}"])
    found = sheets(book)
    assert ("row009" in found.text, "row010" in found.text) == (True, False)
    assert (found.codes, found.notices[0].reason) == (["PARTS_LEFT_OUT"], "left out: rows beyond the limit (5)")


def test_row_that_no_sheet_can_have_is_counted(book: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    book.active["A1"], book.active["A20"] = "first", "last"
    for limit, codes in ((20, []), (19, ["PARTS_LEFT_OUT"]), (9, ["PARTS_LEFT_OUT"])):
        monkeypatch.setattr("chunksink.ingest.formats.office._MAX_ROWS", limit)
        assert sheets(book).codes == codes


def test_slide_or_chapter_that_is_listed_again_is_read_once() -> None:
    listed = '<p:sldIdLst><p:sldId r:id="s1"/><p:sldId r:id="s1"/></p:sldIdLst>'
    presentation = f'<p:main xmlns:p="p" xmlns:r="r">{listed}</p:main>'
    assert slides(pptx(shape("once"), parts={"ppt/presentation.xml": presentation})).text == "Slide 1\n\nonce"
    assert read(EpubFormat(), epub({"a.xhtml": "<p>once</p>", "./a.xhtml": ""}), "a.epub").text == "once"


def test_sheet_whose_cells_are_far_apart_is_small(book: Any) -> None:
    book.active["A1"], book.active["XFD1048576"] = "first", "last"
    assert sheets(book).text.split() == ["Sheet", "|", "first", "|", "|", "---", "|", "|", "last", "|", "|", "---", "|"]


def test_book_is_read_in_order_of_its_spine() -> None:
    body = '<h1>{0}</h1><p><a id="x"/>{1}&nbsp;end, <a href="b.xhtml#x">in</a>, <a href="https://ex.com/">out</a></p>'
    chapters = {"b.xhtml": body.format("First", "opening"), "a%20b.xhtml": body.format("Last", "final")}
    found = read(EpubFormat(), epub(chapters), "a.epub")
    assert found.text == "# First\n\nopening end, in, out\n\n# Last\n\nfinal end, in, out"
    assert found.links == ["https://ex.com/"] * 2
    assert (found.metadata["title"], found.metadata["authors"]) == ("On Bees", ["Ada", "Bob"])
    assert "anchor" not in found.metadata


def test_book_whose_text_is_encrypted_fails() -> None:
    lock = '<encryption><CipherData><CipherReference URI="{}"/></CipherData></encryption>'
    chapters = {"a.xhtml": "<p>Text.</p>"}
    font = epub(chapters, {"META-INF/encryption.xml": lock.format("O/font.otf")})
    assert read(EpubFormat(), font).text == "Text."
    with pytest.raises(SourceFailed, match="DRM"):
        read(EpubFormat(), epub(chapters, {"META-INF/encryption.xml": lock.format("O/a.xhtml")}))


# -- DOCX


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
    pytest.importorskip("mammoth")
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


@pytest.mark.parametrize(
    ("stated", "title"),
    [
        *((name, "The heading") for name in ("Untitled", "untitled document", "about:blank", "DOCUMENT", "Book2")),
        *((name, "The heading") for name in ("PowerPoint Presentation", "PowerPoint-Präsentation", "Presentation2")),
        *((f"Microsoft Word - {name}", "The heading") for name in ("Document12.docx", "Arbeitsmappe", "")),
        ("Microsoft Word - Plan 1.5.docx", "Plan 1.5"),
        ("Microsoft PowerPoint - Talk", "Talk"),
        ("Book of bees", "Book of bees"),
    ],
)
def test_title_that_a_program_has_filled_in_does_not_count(stated: str, title: str) -> None:
    assert word(styled("The heading", "Titel"), **properties(title=stated)).metadata["title"] == title
    assert page(f"<title>{stated}</title><h1>The heading</h1>").metadata["title"] == title
    assert slides(pptx(shape("Text."), parts=properties(title=stated))).metadata["title"] in (title, "a")


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
    assert found.links == [], "bookmarks are not link targets"


@pytest.mark.parametrize(
    "inner",
    [
        f"<w:fldSimple w:instr='REF x'>{run('kept')}</w:fldSimple>",
        f"<w:ins>{run('kept')}</w:ins><w:del>{run('gone')}</w:del>",
        f"<w:r><w:ruby><w:rt>{run('gone')}</w:rt><w:rubyBase>{run('kept')}</w:rubyBase></w:ruby></w:r>",
        f"<w:sdt><w:sdtContent>{run('kept')}</w:sdtContent></w:sdt>",
        f"<w:r><mc:AlternateContent><mc:Choice>{run('kept')}</mc:Choice></mc:AlternateContent></w:r>",
        "<w:r><mc:AlternateContent><mc:Choice><w:drawing><wps:txbx><w:txbxContent>{0}</w:txbxContent></wps:txbx>"
        "</w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox><w:txbxContent>{0}</w:txbxContent></v:textbox>"
        "</w:pict></mc:Fallback></mc:AlternateContent></w:r>".format(paragraph("kept")),
    ],
)
def test_text_is_kept_once_in_any_container(inner: str) -> None:
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
def test_parts_besides_text_are_reported(name: str, text: str, codes: list[str]) -> None:
    found = word(paragraph("Text."), **{f"word/{name}.xml": f'<w:part xmlns:w="{WORD}">{paragraph(text)}</w:part>'})
    assert (found.text, found.codes) == ("Text.", codes)
