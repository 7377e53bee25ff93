"""DOCX keeps its text, whatever it is written with, and what its file says of it."""

import pytest

from chunksink.producers.errors import PARTS_LEFT_OUT, SourceFailed
from tests.producers.docx_files import chunks, docx, paragraph, read, relation, text, told

pytest.importorskip("mammoth")


def test_docx_keeps_its_headings() -> None:
    heading = '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Title</w:t></w:r></w:p>'
    records = chunks(heading + "<w:p><w:r><w:t>Some text.</w:t></w:r></w:p>")
    assert "Some text." in records[-1]["text"]
    assert records[-1]["source"]["source_type"] == "docx"
    for bad in (b"no docx", docx("<w:p>")):
        with pytest.raises(SourceFailed, match="cannot be read as DOCX"):
            read(bad)


def properties(title: str, author: str = "") -> str:
    names = 'xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"'
    names += ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
    said = f"<dc:title>{title}</dc:title><dc:creator>{author}</dc:creator>"
    return f"<cp:coreProperties {names}>{said}</cp:coreProperties>"


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (properties("Said &amp; done"), "Said & done"),
        (properties("  "), "On the <page>"),
        ("", "On the <page>"),
        ("<broken", "On the <page>"),
        ('<!DOCTYPE d [<!ENTITY e SYSTEM "file:///etc/hostname">]>' + properties("&e;"), "On the <page>"),
    ],
)
def test_docx_has_the_title_that_it_says_else_the_one_on_its_first_page(said: str, title: str) -> None:
    body = paragraph("On the &lt;page&gt;", "Title") + paragraph("Introduction", "Heading1") + paragraph("Text.")
    records = chunks(body, {"docProps/core.xml": said} if said else {})
    assert {record["metadata"]["title"] for record in records} == {title}
    assert records[0]["text"] == "On the <page>"
    assert records[-1]["metadata"]["headings_path"] == ["Introduction"]


def test_docx_without_a_title_is_called_by_its_first_heading() -> None:
    body = paragraph("First", "Heading1") + paragraph("Appendix", "Title")
    assert chunks(body)[0]["metadata"]["title"] == "First"


def test_docx_leaves_of_an_image_what_is_said_of_it() -> None:
    picture = '<a:graphicData><pic:pic><pic:blipFill><a:blip r:embed="r9"/></pic:blipFill></pic:pic></a:graphicData>'
    image = f'<wp:inline><wp:docPr id="1" name="x" descr="A red barn"/><a:graphic>{picture}</a:graphic></wp:inline>'
    body = f"<w:p><w:r><w:t>before</w:t><w:drawing>{image}</w:drawing><w:t>after</w:t></w:r></w:p>"
    link = '<Relationship Id="r9" Type="image" Target="media/barn.png"/>'
    relations = (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{link}</Relationships>'
    )
    parts = {"word/media/barn.png": "pixels", "word/_rels/document.xml.rels": relations}
    assert text(body, parts) == "before A red barn after"


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def letter(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


_HALF = f"<m:f><m:num>{letter('a+b')}</m:num><m:den>{letter('2')}</m:den></m:f>"
_SQUARE = f"<m:sSup><m:e>{letter('x')}</m:e><m:sup>{letter('2')}</m:sup></m:sSup>"
_BOX = f"<w:txbxContent><w:p>{run('in a box')}</w:p></w:txbxContent>"
_SHAPE = f"<a:graphic><a:graphicData><wps:wsp><wps:txbx>{_BOX}</wps:txbx></wps:wsp></a:graphicData></a:graphic>"
_DRAWN = f"<w:drawing><wp:anchor>{_SHAPE}</wp:anchor></w:drawing>"


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        (f"<w:bdo w:val='rtl'>{run('אב')}</w:bdo>", "before אב after"),
        (f"<w:dir w:val='rtl'>{run('אב')}</w:dir>", "before אב after"),
        (f"<w:fldSimple w:instr='SEQ Figure'>{run('Figure 17')}</w:fldSimple>", "before Figure 17 after"),
        (
            f"<w:hyperlink w:anchor='x'><w:dir w:val='ltr'>{run('there')}</w:dir></w:hyperlink>",
            "before there after",
        ),
        (
            f"<w:r><w:ruby><w:rt>{run('とうきょう')}</w:rt><w:rubyBase>{run('東京')}</w:rubyBase></w:ruby></w:r>",
            "before 東京(とうきょう) after",
        ),
        (f"<m:oMath>{_HALF}{letter('=')}{_SQUARE}</m:oMath>", "before (a+b)/2=x^2 after"),
        (f"<m:oMathPara><m:oMath>{_SQUARE}</m:oMath></m:oMathPara>", "before x^2 after"),
        (run("10") + run("24", "<w:vertAlign w:val='superscript'/>"), "before 10^24 after"),
        (f"{run('one')}<w:r><w:br w:type='page'/></w:r>{run('two')}<w:r><w:cr/></w:r>", "before one two after"),
        (f"<w:r>{_DRAWN}</w:r>", "before  after\n\nin a box"),
        (
            f"<w:r><mc:AlternateContent><mc:Choice>{_DRAWN}</mc:Choice><mc:Fallback/></mc:AlternateContent></w:r>",
            "before  after\n\nin a box",
        ),
        (
            f"<w:r><mc:AlternateContent><mc:Choice>{_DRAWN}</mc:Choice>"
            f"<mc:Fallback><w:t>instead</w:t></mc:Fallback></mc:AlternateContent></w:r>",
            "before instead after",
        ),
        (f"<w:r><w:pict><v:oval><v:textbox>{_BOX}</v:textbox></v:oval></w:pict></w:r>", "before  after\n\nin a box"),
        (f"<w:del>{run('gone')}</w:del><w:ins>{run('come')}</w:ins>", "before come after"),
    ],
)
def test_text_stays_whatever_it_is_written_with(inner: str, shown: str) -> None:
    assert text(f"<w:p>{run('before ')}{inner}{run(' after')}</w:p>") == shown.replace("  ", " ")


def test_the_notes_are_read_in_the_same_way() -> None:
    reference = "<w:r><w:footnoteReference w:id='2'/></w:r>"
    word = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    note = f"<w:footnote w:id='2'><w:p><w:fldSimple w:instr='x'>{run('In a note.')}</w:fldSimple></w:p></w:footnote>"
    parts = {"word/footnotes.xml": f"<w:footnotes {word}>{note}</w:footnotes>"}
    assert text(f"<w:p>{run('word')}{reference}</w:p>", parts).startswith("word[1]\n\n1. In a note.")


def formula(inner: str) -> str:
    return text(f"<w:p><m:oMath>{inner}</m:oMath></w:p>")


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        (f"<m:sSub><m:e>{letter('x')}</m:e><m:sub>{letter('n+1')}</m:sub></m:sSub>", "x_(n+1)"),
        (
            f"<m:sSubSup><m:e>{letter('x')}</m:e><m:sub>{letter('1')}</m:sub><m:sup>{letter('2')}</m:sup></m:sSubSup>",
            "x_1^2",
        ),
        (f"<m:rad><m:deg/><m:e>{letter('y')}</m:e></m:rad>", "√(y)"),
        (f"<m:rad><m:deg>{letter('3')}</m:deg><m:e>{_HALF}</m:e></m:rad>", "√(3&(a+b)/2)"),
        (f"<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr><m:e>{letter('x')}</m:e></m:d>", "[x]"),
        (f"<m:d><m:e>{letter('x')}</m:e><m:e>{letter('y')}</m:e></m:d>", "(x|y)"),
        (
            f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{letter('i=1')}</m:sub><m:sup>{letter('n')}</m:sup>"
            f"<m:e>{letter('i')}</m:e></m:nary>",
            "∑_(i=1)^n i",
        ),
        (
            f"<m:func><m:fName><m:limLow><m:e>{letter('lim')}</m:e><m:lim>{letter('x→0')}</m:lim></m:limLow></m:fName>"
            f"<m:e>{letter('x')}</m:e></m:func>",
            "lim_(x→0) x",
        ),
        (
            f"<m:m><m:mr><m:e>{letter('1')}</m:e><m:e>{letter('2')}</m:e></m:mr><m:mr><m:e>{letter('3')}</m:e></m:mr></m:m>",
            "1 2; 3",
        ),
        (f"<m:bar><m:e>{letter('x')}</m:e></m:bar><w:del>{letter('y')}</w:del>", "x"),
    ],
)
def test_a_formula_keeps_its_meaning_on_one_line(inner: str, shown: str) -> None:
    assert formula(inner) == shown


def test_a_deep_formula_is_read_once() -> None:
    """Each level twice would be more than anybody waits for."""
    deep = "<m:r><m:t>x</m:t></m:r>"
    for _ in range(40):
        deep = f"<m:box><m:e>{deep}</m:e></m:box>"
    assert formula(deep) == "x"


def test_a_document_of_which_text_would_be_lost_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chunksink.producers.docx.body._is_known", lambda *_: True)
    with pytest.raises(SourceFailed, match="cannot be read whole: w:dir holds text"):
        chunks(f"<w:p><w:dir>{run('lost')}</w:dir></w:p>")


def test_docx_has_the_author_that_it_says() -> None:
    (record,) = chunks(paragraph("Text."), {"docProps/core.xml": properties("Title", 'A. "B" &lt;C&gt;')})
    assert record["metadata"]["authors"] == ['A. "B" <C>']
    assert "authors" not in chunks(paragraph("Text."))[0]["metadata"]


def test_a_bookmark_is_no_place_that_a_link_could_lead_to() -> None:
    mark = "<w:bookmarkStart w:id='1' w:name='_Toc1'/><w:bookmarkEnd w:id='1'/>"
    heading = f"<w:p><w:pPr><w:pStyle w:val='Heading1'/></w:pPr>{mark}{run('Title')}</w:p>"
    assert "anchor" not in chunks(heading + paragraph("Text."))[0]["metadata"]


def mark(kind: str, inner: str = "") -> str:
    return f"<w:r><w:fldChar w:fldCharType='{kind}'>{inner}</w:fldChar></w:r>"


def instruction(text: str) -> str:
    return f"<w:r><w:instrText xml:space='preserve'>{text}</w:instrText></w:r>"


@pytest.mark.parametrize(
    ("said", "url"),
    [
        (r'HYPERLINK "http://ex.com/p"', "http://ex.com/p"),
        (r'HYPERLINK "http://ex.com/p" \o "Tip text"', "http://ex.com/p"),
        (r' HYPERLINK "http://ex.com/p" \t "_blank" ', "http://ex.com/p"),
        (r'HYPERLINK \o "Tip" "http://ex.com/p" \l "frag"', "http://ex.com/p#frag"),
        (r'HYPERLINK \l "frag" \o "Tip"', "#frag"),
        (r"HYPERLINK http://ex.com/p \h", "http://ex.com/p"),
        (r'HYPERLINK "docs\\a.docx"', r"docs\a.docx"),
    ],
)
def test_a_link_in_a_field_leads_where_it_says(said: str, url: str) -> None:
    parted = instruction(said[:8]) + instruction(said[8:])
    for field in (
        f"{mark('begin')}{parted}{mark('separate')}{run('there')}{mark('end')}",
        f"<w:fldSimple w:instr='{said}'>{run('there')}</w:fldSimple>",
    ):
        (record,) = chunks(f"<w:p>{field}{run(' after')}</w:p>")
        assert record["text"] == "there after"
        assert [link["url"] for link in record["metadata"]["links"]] == [url]


_CHOICES = "<w:listEntry w:val='red'/><w:listEntry w:val='blue'/>"


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("<w:checkBox><w:default w:val='0'/><w:checked/></w:checkBox>", "☒"),
        ("<w:checkBox><w:default w:val='1'/></w:checkBox>", "☒"),
        ("<w:checkBox><w:default w:val='1'/><w:checked w:val='0'/></w:checkBox>", "☐"),
        ("<w:checkBox/>", "☐"),
        (f"<w:ddList><w:result w:val='1'/>{_CHOICES}</w:ddList>", "blue"),
        (f"<w:ddList>{_CHOICES}</w:ddList>", "red"),
        (f"<w:ddList><w:result w:val='7'/>{_CHOICES}</w:ddList>", ""),
    ],
)
def test_a_form_says_what_is_chosen(form: str, shown: str) -> None:
    name = "FORMCHECKBOX" if "checkBox" in form else "FORMDROPDOWN"
    begin = mark("begin", f"<w:ffData>{form}</w:ffData>") + instruction(f" {name} ")
    assert text(f"<w:p>{begin}{mark('separate')}{mark('end')}{run(' I consent')}</w:p>") == f"{shown} I consent".strip()
    if name == "FORMDROPDOWN":
        said = f"<w:p>{begin}{mark('separate')}{run('green')}{mark('end')}{run(' I consent')}</w:p>"
        assert text(said) == "green I consent"


def test_a_box_that_is_ticked_or_not_stays() -> None:
    names = 'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
    box = f"<w:sdt {names}><w:sdtPr><w14:checkbox/></w:sdtPr><w:sdtContent>{{}}</w:sdtContent></w:sdt>"
    boxes = [f"<w:p>{box.format(run(sign))}{run(words)}</w:p>" for sign, words in (("☐", " I consent"), ("☒", " I do"))]
    assert text("".join(boxes)) == "☐ I consent\n\n☒ I do"


def test_the_words_of_a_title_on_two_lines_are_parted() -> None:
    title = "<w:r><w:t>Doc</w:t><w:br/><w:t>Title</w:t></w:r>"
    body = f"<w:p><w:pPr><w:pStyle w:val='Title'/></w:pPr>{title}</w:p>{paragraph('Text.')}"
    assert chunks(body)[0]["metadata"]["title"] == "Doc Title"


def numbering(levels: str) -> dict[str, str]:
    word = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    own = "<w:lvlOverride w:ilvl='0'><w:startOverride w:val='1'/></w:lvlOverride>"
    numbers = "".join(
        f"<w:num w:numId='{number}'><w:abstractNumId w:val='0'/>{change}</w:num>"
        for number, change in ((1, ""), (2, own), (3, ""))
    )
    lists = f"<w:abstractNum w:abstractNumId='0'>{levels}</w:abstractNum>{numbers}"
    return relation("numbering", "numbering.xml") | {"word/numbering.xml": f"<w:numbering {word}>{lists}</w:numbering>"}


def level(depth: int, start: int, form: str = "decimal") -> str:
    return f"<w:lvl w:ilvl='{depth}'><w:start w:val='{start}'/><w:numFmt w:val='{form}'/></w:lvl>"


def item(words: str, number: int = 1, depth: int = 0) -> str:
    place = f"<w:numPr><w:ilvl w:val='{depth}'/><w:numId w:val='{number}'/></w:numPr>"
    return f"<w:p><w:pPr>{place}</w:pPr>{run(words)}</w:p>"


def test_items_have_the_numbers_that_word_shows() -> None:
    parts = numbering(level(0, 5) + level(1, 1))
    between = paragraph("Between.")
    assert text(item("a") + item("b") + between + item("c"), parts) == "5. a\n6. b\n\nBetween.\n\n7. c"
    assert text(item("a") + item("b", 1, 1) + item("c") + item("d", 1, 1), parts) == "5. a\n   1. b\n6. c\n   1. d"
    assert text(item("a") + item("b", 2) + item("c", 2) + item("d", 3), parts) == "5. a\n\n1. b\n2. c\n3. d"
    assert text(item("a") + item("b"), numbering(level(0, 5, "bullet"))) == "- a\n- b"


def test_our_own_marks_are_no_text_of_anybodys() -> None:
    body = paragraph("a\ufdd25\ufdd3b") + paragraph("\ufdd40\ufdd5") + paragraph("c")
    assert text(body) == "a5b\n\n0\n\nc"


TWICE = "</Choice><Fallback><w:t>Page 1 of 3</w:t></Fallback></w:p>"


def part(text: str, holder: str = "t") -> str:
    return f'<root xmlns:w="http://example.org/any"><w:p><w:{holder}>{text}</w:{holder}></w:p></root>'


@pytest.mark.parametrize(
    ("parts", "codes"),
    [
        ({}, []),
        ({"word/comments.xml": part("Wrong!")}, [PARTS_LEFT_OUT]),
        ({"word/header2.xml": part("For internal use only")}, [PARTS_LEFT_OUT]),
        ({"word/footer1.xml": part("Page 3 of 12")}, []),
        ({"word/footer1.xml": part("")}, []),
        ({"word/header1.xml": '<root><docPr descr="The sign of ours"/></root>'}, [PARTS_LEFT_OUT]),
        ({"word/footer1.xml": part("P</w:t><w:t>age </w:t><w:t>1</w:t><w:t> o</w:t><w:t>f 3")}, []),
        ({"word/footer1.xml": part("Page 1 of 3").replace("<w:p>", "<w:p><Choice>").replace("</w:p>", TWICE)}, []),
        ({"word/header1.xml": "<broken"}, []),
        ({"word/diagrams/data1.xml": part("Pump")}, [PARTS_LEFT_OUT]),
        ({"word/charts/chart1.xml": part("2025", "v")}, []),
        ({"word/charts/chart1.xml": part("North", "v")}, [PARTS_LEFT_OUT]),
    ],
)
def test_docx_says_what_stands_beside_its_text(parts: dict[str, str], codes: list[str]) -> None:
    assert told(docx(paragraph("Text."), parts)) == codes


def drawn(inner: str) -> str:
    return f"<w:p><w:r><w:t>Text.</w:t></w:r><w:r>{inner}</w:r></w:p>"


PIC = "<pic:pic><pic:nvPicPr/></pic:pic>"
TABLE = "<w:tbl><w:tblPr>{}</w:tblPr><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>"
BOX = "<a:graphic><wps:txbx><w:txbxContent><w:p><w:r><w:t>In.</w:t></w:r></w:p></w:txbxContent></wps:txbx></a:graphic>"


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        (drawn('<w:pict><v:shape><v:textpath string="SALE"/></v:shape></w:pict>'), [PARTS_LEFT_OUT]),
        (drawn('<w:pict><v:shape><v:textpath string=""/></v:shape></w:pict>'), []),
        (drawn(f'<w:drawing><wp:inline><wp:docPr descr="A box"/>{BOX}</wp:inline></w:drawing>'), [PARTS_LEFT_OUT]),
        (drawn(f"<w:drawing><wp:inline><wp:docPr/>{BOX}</wp:inline></w:drawing>"), []),
        (drawn('<w:drawing><wp:inline><wp:docPr descr="A line"/></wp:inline></w:drawing>'), [PARTS_LEFT_OUT]),
        (drawn('<w:drawing><wp:inline><wp:docPr title="A line"/></wp:inline></w:drawing>'), [PARTS_LEFT_OUT]),
        (drawn('<w:drawing><wp:inline><wp:docPr descr="" name="Line 1"/></wp:inline></w:drawing>'), []),
        (drawn('<w:pict><v:shape alt="A line"/></w:pict>'), [PARTS_LEFT_OUT]),
        (
            drawn(
                f'<w:drawing><wp:docPr descr="A line"/><a:graphicData><a:wpc>{PIC}</a:wpc></a:graphicData></w:drawing>'
            ),
            [PARTS_LEFT_OUT],
        ),
        (drawn(f'<w:drawing><wp:docPr descr="A cat"/><a:graphicData>{PIC}</a:graphicData></w:drawing>'), []),
        (paragraph("Text.") + TABLE.format('<w:tblDescription w:val="Prices"/>'), [PARTS_LEFT_OUT]),
        (paragraph("Text.") + TABLE.format(""), []),
    ],
)
def test_docx_says_what_it_draws(body: str, codes: list[str]) -> None:
    assert told(docx(body)) == codes
