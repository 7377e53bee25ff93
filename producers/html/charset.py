"""From the bytes of a page to its text, in the charset that its head names, as browsers understand that name.

The Encoding Standard of the WHATWG gives old labels the larger charset that pages had in fact: `iso-8859-1` is
windows-1252, whose quotes and dashes would be control characters otherwise. Like browsers it puts a replacement for a
byte that cannot be read; a page with more than traces of them is refused.
"""

import codecs
import re
from contextlib import suppress

from chunksink.producers.errors import CHUNKING_FAILED, SourceFailed
from chunksink.producers.markdown.normalise import decode as decode_utf8

_HEAD_BYTES = 4096
_COMMENT = re.compile(rb"<!--(?:-?>|.*?(?:-->|\Z))", re.DOTALL)
# Those that have a name describe the page, and may speak of charsets.
_META = re.compile(
    rb"""<meta(?![^>]*\s(?:name|property|itemprop)\s*=)[^>]{1,999}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE
)
_XML = re.compile(rb"""\s*<\?xml\s[^>]{1,999}?\sencoding\s*=\s*["']\s*([\w.:-]+)""", re.IGNORECASE)

# What browsers read, by the codec that a page names. UTF-16 it is not: its label could not have been read.
_MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "utf-16": "utf-8",
    "utf-16-be": "utf-8",
    "utf-16-le": "utf-8",
}
# The labels of the standard that Python does not know.
_LABELS = {
    **{f"iso8859{part}": f"iso8859-{part}" for part in range(1, 17)},
    **{f"x-cp125{page}": f"cp125{page}" for page in range(9)},
    **dict.fromkeys(("unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8"), "utf-8"),
    **dict.fromkeys(("csunicode", "iso-10646-ucs-2", "ucs-2", "unicode", "unicodefeff", "unicodefffe"), "utf-16"),
    **dict.fromkeys(("csiso88596e", "csiso88596i", "iso-8859-6-e", "iso-8859-6-i"), "iso8859-6"),
    **dict.fromkeys(("csiso88598e", "csiso88598i", "iso-8859-8-e", "iso-8859-8-i", "logical", "visual"), "iso8859-8"),
    **dict.fromkeys(("csgb2312", "gb_2312", "gb_2312-80", "x-gbk"), "gb18030"),
    **dict.fromkeys(("cseuckr", "csksc56011987", "iso-ir-149", "ks_c_5601-1989", "ksc_5601", "windows-949"), "cp949"),
    **dict.fromkeys(("csmacintosh", "mac", "x-mac-roman"), "mac-roman"),
    **dict.fromkeys(("x-mac-cyrillic", "x-mac-ukrainian"), "mac-cyrillic"),
    **dict.fromkeys(("dos-874", "windows-874"), "cp874"),
    **dict.fromkeys(("koi", "koi8"), "koi8-r"),
    **dict.fromkeys(("cn-big5", "x-x-big5"), "big5"),
    **dict.fromkeys(("cseucpkdfmtjapanese", "x-euc-jp"), "euc-jp"),
    **dict.fromkeys(("windows-31j", "x-sjis"), "cp932"),
    "csisolatin9": "iso8859-15",
    "koi8-ru": "koi8-u",
    "sun_eu_greek": "iso8859-7",
    "x-user-defined": "cp1252",
}
_EUC_PAIR = re.compile(rb"[\xa1-\xfe]{2}")
_AS_BROWSERS = "chunksink.as-browsers"
_REPLACING = "chunksink.replacing"
_REPLACEMENT = "\ufffd"
_CHARACTERS_FOR_ONE = 1000


def decode(data: bytes) -> str:
    """UTF-8, or what the page says that it is. Raises SourceFailed."""
    label = None if data.startswith(codecs.BOM_UTF8) else _label(data[:_HEAD_BYTES])
    try:
        return decode_utf8(data) if label is None else data.decode(_codec(label), _AS_BROWSERS)
    except (SourceFailed, LookupError, UnicodeError) as error:
        text = _with_replacements(data, label or "utf-8")
        if text is not None:
            return text
        if isinstance(error, SourceFailed):
            raise
        raise SourceFailed(CHUNKING_FAILED, f"its head says that it is {label}, and it is not: {error}") from error


def _with_replacements(data: bytes, label: str) -> str | None:
    """None where they are many: in another charset than the one meant half of a text cannot be read, and where
    somebody has copied a line in, a byte or two."""
    try:
        text = data.decode(_codec(label), _REPLACING)
    except (LookupError, UnicodeError):
        return None
    return text if b"\0" not in data and text.count(_REPLACEMENT) * _CHARACTERS_FOR_ONE <= len(text) else None


def _label(head: bytes) -> str | None:
    """What its `<meta>` says; without one, the XML declaration."""
    said = _META.search(_COMMENT.sub(b"", head)) or _XML.match(head)
    return said[1].decode() if said else None


def _codec(label: str) -> str:
    """Raises LookupError."""
    name = label.lower()
    codec = codecs.lookup(_LABELS.get(name, name)).name
    return _MEANT.get(codec, codec)


def _as_browsers(error: UnicodeError) -> tuple[str, int]:
    """What browsers read where Python's codecs see nothing. Raises the error where they do not either."""
    if isinstance(error, UnicodeDecodeError):
        unread = error.object[error.start : error.start + 2]
        if error.encoding == "charmap" and unread[0] < 0xA0:  # unused by Windows: the control of the same number
            return chr(unread[0]), error.start + 1
        if error.encoding == "euc_jp" and _EUC_PAIR.fullmatch(unread):
            with suppress(UnicodeDecodeError):
                return _in_shift_jis(unread[0] - 0xA1, unread[1] - 0xA1), error.start + 2
    raise error


def _in_shift_jis(row: int, cell: int) -> str:
    """Both have the same table of characters, but what NEC and IBM put in (`①`, `㈱`) Python knows in this one only."""
    lead = row // 2 + (0x81 if row < 62 else 0xC1)
    trail = cell + (0x9F if row % 2 else 0x40 if cell < 63 else 0x41)
    return bytes((lead, trail)).decode("cp932")


def _replace(error: UnicodeError) -> tuple[str, int]:
    try:
        return _as_browsers(error)
    except UnicodeDecodeError as unread:
        return _REPLACEMENT, unread.end


codecs.register_error(_AS_BROWSERS, _as_browsers)
codecs.register_error(_REPLACING, _replace)
