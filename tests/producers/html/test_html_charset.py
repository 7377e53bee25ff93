"""A page is read in the charset that its head names, as browsers understand the name, or it is refused."""

import codecs

import pytest

from chunksink.producers.errors import SourceFailed
from chunksink.producers.html import HtmlChunker
from chunksink.producers.markdown import SourceVersion
from tests.producers.support import CREATED_AT, PRODUCER

LATIN = "“quoted” – it’s €5…"


def text(data: bytes) -> str:
    records = HtmlChunker().chunks(data, SourceVersion.of("a", data), created_at=CREATED_AT, producer=PRODUCER)
    return "\n".join(record["text"] for record in records)


def page(label: str, body: bytes) -> bytes:
    return f'<html><head><meta charset="{label}"></head><body><p>'.encode() + body


@pytest.mark.parametrize(
    ("label", "codec", "body"),
    [
        ("iso-8859-1", "cp1252", LATIN),
        ("latin1", "cp1252", LATIN),
        ("us-ascii", "cp1252", LATIN),
        ("iso_8859-1:1987", "cp1252", LATIN),
        ("x-user-defined", "cp1252", LATIN),
        ("iso-8859-9", "cp1254", f"{LATIN} ğış"),
        ("tis-620", "cp874", "“ภาษาไทย” – €5…"),
        ("iso-8859-11", "cp874", "“ภาษาไทย” – €5…"),
        ("windows-874", "cp874", "“ภาษาไทย” – €5…"),
        ("gb2312", "gb18030", "朱镕基 — 中·文 €"),
        ("gbk", "gb18030", "朱镕基 㐀"),
        ("shift_jis", "cp932", "①㈱ ～ 髙"),
        ("x-sjis", "cp932", "①㈱ ～ 髙"),
        ("ms_kanji", "cp932", "①㈱ ～ 髙"),
        ("euc-kr", "cp949", "똠방각하"),
        ("ks_c_5601-1987", "cp949", "똠방각하"),
        ("big5", "big5hkscs", "中文 嘅 粧"),
        ("utf-16", "utf-8", "plain – text"),
        ("utf-16le", "utf-8", "plain – text"),
        ("utf-16be", "utf-8", "plain – text"),
        ("unicode", "utf-8", "plain – text"),
        ("iso88592", "iso8859-2", "Żółć"),
        ("x-cp1251", "cp1251", "“Ёж” – №5"),
        ("x-mac-cyrillic", "mac-cyrillic", "Ёж"),
        ("iso-8859-8-i", "iso8859-8", "שלום"),
        ("koi8-ru", "koi8-u", "їжак"),
    ],
)
def test_a_label_means_what_browsers_take_it_for(label: str, codec: str, body: str) -> None:
    assert text(page(label, body.encode(codec))) == body
    assert text(page(label.upper(), body.encode(codec))) == body


def test_what_nec_and_ibm_added_to_japanese_is_read_in_euc_too() -> None:
    """Its rows 13, and 89 to 92: the first and the second half of an odd row, and an even one."""
    assert text(page("euc-jp", b"\xad\xa1 \xad\xea \xf9\xa1 \xfc\xbb \xb4\xc1\xbb\xfa")) == "① ㈱ 纊 鋠 漢字"
    for broken in (b"\xad", b"\xad\xff", b"\xad<p>", b"\xff\xa1", b"\xa9\xa1", b"\x80\xa5"):
        with pytest.raises(SourceFailed, match="it is euc-jp, and it is not: 'euc_jp' codec"):
            text(page("euc-jp", broken + b" "))


@pytest.mark.parametrize("label", ["windows-1252", "iso-8859-1", "windows-1250", "windows-1258", "windows-874"])
def test_bytes_that_windows_leaves_unused_are_controls_and_go(label: str) -> None:
    unused = [byte for byte in (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d") if not known(label, byte)]
    assert unused
    assert text(page(label, b"a" + b"b".join(unused) + b"c")) == f"a{'b' * (len(unused) - 1)}c"


def known(label: str, byte: bytes) -> bool:
    return bool(byte.decode({"iso-8859-1": "cp1252", "windows-874": "cp874"}.get(label, label), "ignore"))


@pytest.mark.parametrize(("label", "broken"), [("windows-1253", b"\xaa"), ("gbk", b"\x81 "), ("shift_jis", b"\x81 ")])
def test_bytes_that_browsers_cannot_read_are_refused(label: str, broken: bytes) -> None:
    with pytest.raises(SourceFailed, match=f"its head says that it is {label}, and it is not"):
        text(page(label, b"a" + broken))


@pytest.mark.parametrize(
    ("label", "codec", "broken", "shown"),
    [
        ("", "utf-8", b"\xe9", "�"),
        ("utf-8", "utf-8", b"\xe9", "�"),
        ("gb2312", "gb18030", b"\xa6\x20", "� "),
        ("windows-1253", "cp1253", b"\xaa", "�"),
        ("euc-jp", "euc-jp", b"\xad\xa1\xff ", "①� "),
    ],
)
def test_a_byte_that_somebody_copied_in_is_one_that_browsers_replace(
    label: str, codec: str, broken: bytes, shown: str
) -> None:
    long, short = (("word " * count).encode(codec) for count in (400, 20))
    begin = page(label, b"") if label else b"<p>"
    assert text(begin + long + broken + b"end").endswith(f"word {shown}end")
    with pytest.raises(SourceFailed):
        text(begin + short + broken + b"end")


@pytest.mark.parametrize(
    "head",
    [
        "<meta charset=latin1>",
        "<META CharSet = 'ISO-8859-1' />",
        '<meta charset=" Latin1 ">',
        '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">',
        "<meta content='text/html;charset=\"iso-8859-1\"' http-equiv=content-type>",
        '<?xml version="1.0" encoding="iso-8859-1"?>\n<html xmlns="http://www.w3.org/1999/xhtml">',
        "\r\n<?xml version='1.0' standalone='yes' encoding = ' ISO-8859-1 ' ?>",
        '<?xml version="1.0" encoding="utf-8"?><meta charset="iso-8859-1">',
        '<!-- <meta charset="utf-8"> --><meta charset="iso-8859-1">',
        '<!--><meta charset="iso-8859-1"><!-- <meta charset="utf-8"> -->',
        '<meta name="description" content="what charset=utf-8 means"><meta charset="iso-8859-1">',
        '<meta property="og:title" content="charset=utf-8"><meta charset="iso-8859-1">',
    ],
)
def test_the_head_names_the_charset_in_many_ways(head: str) -> None:
    assert text(f"{head}<p>{LATIN}".encode("cp1252")) == LATIN


@pytest.mark.parametrize(
    "head",
    [
        "",
        "<!-- <meta charset=latin1> -->",
        "<!-- <meta charset=latin1>",
        '<meta name="description" content="what charset=latin1 means">',
        '<p>An XML file begins with <?xml version="1.0" encoding="iso-8859-1"?>',
        f"{' ' * 4096}<meta charset=latin1>",
    ],
)
def test_a_page_whose_head_names_none_is_utf_8(head: str) -> None:
    with pytest.raises(SourceFailed, match=r"^not UTF-8: byte 0xe9"):
        text(f"{head}<p>caf\xe9, th\xe9, \xe9t\xe9, \xe0, \xf4".encode("latin-1"))


def test_utf_8_that_is_marked_as_such_is_nothing_else() -> None:
    assert text(codecs.BOM_UTF8 + page("iso-8859-1", LATIN.encode())) == LATIN
    with pytest.raises(SourceFailed, match="its head says that it is utf-8, and it is not"):
        text(page("utf-8", b"caf\xe9"))


@pytest.mark.parametrize("head", ["", '<meta charset="utf-16">', '<?xml version="1.0" encoding="utf-16"?>'])
def test_utf_16_that_is_marked_as_such_is_refused_as_what_it_is(head: str) -> None:
    with pytest.raises(SourceFailed, match=r"^it is UTF-16, and only UTF-8 is read; convert it: iconv"):
        text(codecs.BOM_UTF16_LE + f"{head}<p>hello".encode("utf-16-le"))


@pytest.mark.parametrize("charset", ["undefined", "idna", "rot13", "no-such"])
def test_a_charset_that_is_none_of_text_is_the_failure_of_its_file(charset: str) -> None:
    with pytest.raises(SourceFailed, match=f"its head says that it is {charset}, and it is not"):
        text(page(charset, b"caf\xe9"))
