"""PDF: the text of pages with their numbers, headings of the outline, filled forms, scans, encryption."""

import pytest

from chunksink.chunkbus.canonical import chunk_object_hash
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.pdf import PdfFormat
from tests.ingest.converters.files import lines, pdf
from tests.ingest.converters.support import Reading, read

pytest.importorskip("pypdfium2")


def portable(data: bytes) -> Reading:
    return read(PdfFormat(), data, "a.pdf")


def pages(found: Reading) -> list[tuple[int, ...]]:
    return [tuple(record["span"]["pages"].values()) for record in found.records]


def test_chunks_have_numbers_of_their_pages() -> None:
    found = portable(pdf(lines("The first page."), lines("# no heading", "* no item", "1. <b> \\\\")))
    assert found.text.replace(" \n", "\n") == "The first page.\n\n# no heading\n* no item\n1. <b> \\"
    assert pages(found) == [(1, 2)]
    assert found.records[0]["hashes"]["chunk_object_hash"] == chunk_object_hash(found.records[0])
    assert (found.records[0]["source"]["source_type"], found.metadata["title"]) == ("pdf", "a")
    many = portable(
        pdf(*(lines(f"Page {number}.", *["Words go on and on." for _ in range(30)]) for number in range(1, 9)))
    )
    assert len(many.records) > 2
    assert (pages(many)[0][0], pages(many)[-1][1]) == (1, 8)
    assert pages(many) == sorted(pages(many))


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("K\\374hl-", "wasser", "Kühlwasser"),
        ("DIN-", "Norm", "DIN-Norm"),
        ("INTRO-", "DUCTION", "INTRODUCTION"),
        ("K\\304HL-", "\\334BERLAUF", "KÄHLÜBERLAUF"),
        ("Plan-", "B", "Plan-B"),
        ("PLAN-", "B", "PLAN-B"),
        ("Vitamin-", "DEF", "Vitamin-DEF"),
        ("Bauteil XK-", "4711", "Bauteil XK-4711"),
        ("die Ost-", "und Westseite", "die Ost- und Westseite"),
        ("pre-", "or postwar", "pre- or postwar"),
        ("Run-", "der Tisch", "Runder Tisch"),
        ("Pflicht-", "undo", "Pflichtundo"),
        ("www.example-", "site.de", "www.example-site.de"),
        ("https://ex.com/a-", "b/c", "https://ex.com/a-b/c"),
        ("max.muster-", "mann@ex.com", "max.muster-mann@ex.com"),
        ("example-", "site.de", "example-site.de"),
    ],
)
def test_hyphen_at_end_of_line_stays_unless_it_splits_a_word(first: str, second: str, joined: str) -> None:
    assert portable(pdf(lines("See", first, second))).text == f"See\n{joined}"


@pytest.mark.parametrize(("blank_lines", "end"), [(0, "Korrosionsschutz 1"), (2, "Korrosions-\nschutz 1")])
def test_hyphen_at_end_of_text_is_not_joined_with_the_footer(blank_lines: int, end: str) -> None:
    assert (
        portable(pdf(lines("More about", "Korrosions-", *[""] * blank_lines, "schutz 1"))).text == f"More about\n{end}"
    )


def test_leaders_of_contents_are_shortened() -> None:
    shown = portable(pdf(lines("Bees . . . . . . 2", "Wasps.....3", "Ants . . .", ". . . . 4", "And so on... Or. . .")))
    assert shown.text.splitlines() == ["Bees … 2", "Wasps … 3", "Ants … 4", "And so on... Or. . ."]


def numbered_pages(*texts: str) -> bytes:
    pages = (lines("ACME", f"Page {n} of 99", *text.split("/"), "Secret", str(n)) for n, text in enumerate(texts, 7))
    return pdf(*pages)


def test_headers_and_footers_that_most_pages_repeat_are_read_once() -> None:
    found = portable(numbered_pages("One.", "Two", "goes on.", "Four."))
    words = found.text.split()
    assert words == ["ACME", "Page", "7", "of", "99", "One.", "Two", "goes", "on.", "Four.", "Secret", "10"]
    assert pages(found) == [(1, 4)]
    assert portable(numbered_pages("One.", "Two.")).text.count("ACME") == 2, "two pages show no rule"


@pytest.mark.parametrize(
    ("given", "read_once"),
    [
        (["Otters/River/Spring"] * 3, "Otters/River/Spring"),
        (
            ["Otters/River/Page 1/Secret", "Otters/River/Page 2/Secret", "Otters/River/Page 3/Secret"],
            "Otters/River/Page 1/Secret",
        ),
        (["Otters/Cover", "Otters/River/a", "Otters/River/b", "Otters/River/c"], "Otters/Cover/River/a/b/c"),
        (["a/River/1", "b/River/2", "c/River/3", "Words./4"], "a/b/c/River/Words./4"),
    ],
)
def test_running_line_is_read_once_however_few_lines_its_pages_have(given: list[str], read_once: str) -> None:
    found = portable(pdf(*(lines(*page.split("/")) for page in given)))
    assert [line for line in found.text.splitlines() if line] == read_once.split("/")


def test_lines_that_repeat_within_pages_or_differ_in_other_numbers_are_text() -> None:
    rows = portable(pdf(*[lines("Value", "Value", "Value")] * 4))
    assert rows.text.split() == ["Value"] * 12
    bills = portable(pdf(*(lines(f"Bill {number}", f"Text {number}.") for number in (31, 77, 12))))
    assert [number for number in ("31", "77", "12") if f"Bill {number}" in bills.text] == ["31", "77", "12"]


@pytest.mark.parametrize("word", ["Invoice", "Day", "Page ACME", "Section of", "Lot S", "Invoice -"])
def test_numbers_beside_other_words_are_not_page_numbers(word: str) -> None:
    first = [f"{word} {number}" for number in range(2001, 2006)]
    found = portable(pdf(*(lines(line, f"Text {line[-1]}.") for line in first)))
    assert [line for line in found.text.splitlines() if line.startswith(word)] == first


@pytest.mark.parametrize(
    ("header", "footer"),
    [
        ("Seite {}", "- {} -"),
        ("p. {}", "{} / 99"),
        ("S. {} von 9", "Page {} of 9"),
        ("ACME", "VERTRAULICH - Seite {} von 9"),
        ("{} | Annual Report 2024", "Annual Report 2024 | {}"),
        ("ACME - {}", "{} of 9"),
    ],
)
def test_page_numbers_are_read_once(header: str, footer: str) -> None:
    found = portable(pdf(*(lines(header.format(n), f"Text {n}x.", footer.format(n)) for n in range(1, 6))))
    texts = [header.format(1), *(f"Text {n}x." for n in range(1, 6)), footer.format(5)]
    assert [line for line in found.text.splitlines() if line] == texts


def test_headings_of_the_outline_are_no_headers() -> None:
    marks = [f"<< /Title (Notes) /Parent 4 0 R /Dest [{10 + 2 * n} 0 R /Fit] /Next {6 + n} 0 R >>" for n in range(5)]
    more = ("<< /Type /Outlines /First 5 0 R /Last 9 0 R /Count 5 >>", *marks)
    texts = [lines("ACME", "Notes", f"Text {'abcde'[n]}.") for n in range(5)]
    found = portable(pdf(*texts, more=more, catalog="/Outlines 4 0 R"))
    assert (found.text.count("Notes"), found.text.count("ACME")) == (5, 1)


def test_headings_are_those_of_outline_without_their_numbers() -> None:
    more = (
        "<< /Type /Outlines /First 5 0 R /Last 7 0 R /Count 3 >>",
        "<< /Title (Begin) /Parent 4 0 R /Dest [8 0 R /Fit] /First 6 0 R /Last 6 0 R /Next 7 0 R >>",
        "<< /Title (Go on: details) /Parent 5 0 R /Dest [10 0 R /Fit] >>",
        "<< /Title (1984) /Parent 4 0 R /Dest [8 0 R /Fit] >>",
    )
    first, second = lines("1 Begin", "Some words."), lines("Words before.", "1.1 Go on: details", "More words.")
    found = portable(pdf(first, second, more=more, catalog="/Outlines 4 0 R"))
    assert [record["metadata"]["headings_path"] for record in found.records] == [
        ["1 Begin"],
        ["1 Begin", "1.1 Go on: details"],
    ]
    assert pages(found) == [(1, 2), (2, 2)]
    assert "Words before." in found.records[0]["text"]


def test_form_values_are_text_except_passwords() -> None:
    field = "/Type /Annot /Subtype /Widget /Rect [72 {} 300 {}] /F 4 /DA (/Helv 12 Tf 0 g)"
    name = f"<< {field.format(600, 620)} /FT /Tx /T (name) /V (Maria Mustermann) >>"
    secret = f"<< {field.format(560, 580)} /FT /Tx /Ff 8192 /T (pin) /V (12345) >>"
    choice = f"<< {field.format(520, 540)} /FT /Ch /Ff 131072 /T (land) /V (DE) /Opt [[(DE) (Germany)] (AT)] >>"
    more = (name, secret, choice)
    form = "/AcroForm << /Fields [4 0 R 5 0 R 6 0 R] /DR << /Font << /Helv 3 0 R >> >> >>"
    found = portable(pdf(lines("Please fill in."), more=more, catalog=form, page="/Annots [4 0 R 5 0 R 6 0 R]"))
    shown = [words in found.text for words in ("Please fill in.", "Maria Mustermann", "Germany", "12345")]
    assert shown == [True, True, True, False]


def test_scan_is_reported_and_blank_page_is_empty() -> None:
    scan, blank = portable(pdf("0 0 100 100 re f")), portable(pdf(""))
    assert (scan.is_empty, scan.codes) == (True, ["SCAN_WITHOUT_TEXT"])
    assert (blank.is_empty, blank.codes) == (True, ["SOURCE_EMPTY"])
    mixed = portable(pdf("0 0 100 100 re f", lines("Some words.")))
    assert mixed.codes == ["PARTS_LEFT_OUT"]
    assert mixed.notices[0].reason == "left out: pages without text (1)"
    assert pages(mixed) == [(2, 2)]


def test_pdf_that_asks_for_password_fails_with_remedy() -> None:
    locked = "/ID [<69> <69>] /Encrypt << /Filter /Standard /V 1 /R 2 /O <{0}> /U <{0}> /P -4 >>".format("00" * 32)
    with pytest.raises(SourceFailed, match="qpdf --decrypt"):
        portable(pdf(lines("Secret."), trailer=locked))
