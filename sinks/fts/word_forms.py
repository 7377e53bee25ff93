"""Forms of a word: its spellings, its stem in the index, and the words that begin with it."""

import re
import sqlite3
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from chunksink.sinks.fts.letters import IGNORED, fold
from chunksink.sinks.fts.schema import TOKENIZER

_WIDE = {code: code + 0xFEE0 for code in (*range(0x30, 0x3A), *range(0x41, 0x5B), *range(0x61, 0x7B))}
_NARROW = {code + 0xFEE0: code for code in range(0x21, 0x7F)}
_IGNORED = re.compile(f"[\u00ad\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670{IGNORED}]")
"""Soft hyphens, Hebrew points, Arabic vowel signs, and what some of them become in the index."""
_WITH_PREFIXES = (
    (re.compile("(?:[وب]?ال|لل)?([ء-ي]{3,})"), ("", "ال", "وال", "بال", "لل", "و")),
    (re.compile("ה?([א-ת]{3,})"), ("", *"הבלומש", "וה")),
)
"""Arabic and Hebrew write the article, and some short words such as *and*, together with the next word. A word may also
begin with the letters of an article, so the prefixes are tried with and without them."""
_HALF_WIDE = re.compile("[\uff66-\uffdc]")
_VERSION = re.compile(r"\W*(v?)(\d+(?:\.\d+)+)\W*", re.IGNORECASE)
_NAME = re.compile("((?![adimosty]\\d)[^\\W\\d_]+)([-\u2010-\u2015]?)(\\d+)")
"""Not A4 or S3: texts have *a 4*, *I 7*, *company's 3*."""
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


@lru_cache(maxsize=4096)
def spellings(term: str) -> tuple[str, ...]:
    """How texts may spell a term, the term itself first. FTS5 treats soft hyphens as word ends. Umlauts may be written
    as ae, oe and ue. A version may have a v or not; a name with digits may be one word or two. Arabic and Hebrew words
    may have an article.
    """
    term = fold(term)
    plain = _IGNORED.sub("", term.translate(_NARROW).lower())
    forms = [plain, plain.translate(_UMLAUTS)]
    if version := _VERSION.fullmatch(term):
        forms.append(version[2] if version[1] else f"v{version[2]}")
    if name := _NAME.fullmatch(plain):
        letters, hyphen, digits = name.groups()
        forms.append(f"{letters}{digits}" if hyphen else f"{letters} {digits}")
    for word, prefixes in _WITH_PREFIXES:
        if found := word.fullmatch(plain):
            forms += [prefix + base for base in (found[1], plain) for prefix in prefixes]
    return (term, *(form for form in dict.fromkeys(forms) if form != term.lower()))


def widths(word: str) -> list[str]:
    """The word, and its full-width and narrow forms: Chinese and Japanese texts use both."""
    narrow = word.translate(_NARROW)
    return list(dict.fromkeys([word, narrow, narrow.translate(_WIDE)]))


def composed(run: str) -> list[str]:
    """The run, and its composed form, which most texts use; half-width kana become normal ones."""
    usual = unicodedata.normalize("NFKC", run) if _HALF_WIDE.search(run) else unicodedata.normalize("NFC", run)
    return list(dict.fromkeys([run, usual]))


REMOVABLE_SUFFIXES = ("", "ness", "e", "l")
"""For most stems, the stem plus one of these suffixes is a word that the stemmer reduces to that stem."""


_stemming = threading.Lock()


def stems_of(words: Sequence[str]) -> dict[str, str]:
    """The stem of each word, computed by FTS5 in a temporary index; "" if it is not a word."""
    connection = _stemmer()
    with _stemming:
        try:
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO words(rowid, word) VALUES (?, ?)", enumerate(words))
            stems = dict(connection.execute("SELECT doc, term FROM stems").fetchall())
        finally:
            connection.rollback()
    return {word: stems.get(row, "") for row, word in enumerate(words)}


@lru_cache(maxsize=1)
def _stemmer() -> sqlite3.Connection:
    """An empty index. It is kept, because making it takes ten times as long as using it."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute(f"CREATE VIRTUAL TABLE words USING fts5(word, content='', tokenize='{TOKENIZER}')")
    connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, instance)")
    return connection


def folded(word: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFD", fold(word).lower()) if not unicodedata.combining(char))


def words_of(stems: Iterable[str]) -> list[str]:
    """A word for each of these stems, if one of `REMOVABLE_SUFFIXES` makes one."""
    stem_of = stems_of([stem + suffix for stem in stems for suffix in REMOVABLE_SUFFIXES])
    words: dict[str, str] = {}
    for word, stem in stem_of.items():
        if word.removeprefix(stem) in REMOVABLE_SUFFIXES:
            words.setdefault(stem, word)
    return list(words.values())


_MIN_LETTERS = 3
_ENDING_LIST = """
    ability able ably al alism alistic ality alization alize ally ance ances ancy ant ants ate ated ates ating ation
    ational ations ative ator ators ed eed eer ement ements ence ences ency ent ently ents er ers es est fully fulness
    ibilities ibility ible ibly ic ical ically icate icated icates icating icative icism icities icity ics ied ier ies
    iest ily iness ing ings ion ional ions ious iously ism isms ist ists ities ity ive ively iveness ization izations
    ize ized izer izers izes izing less lessness liness logical logies logy ly ment ments ness nesses ogies ogy ous
    ously ousness s ful
"""
_ENDINGS = tuple(_ENDING_LIST.split())
_AFTER_DOUBLED = ("ed", "ing")
"""Endings tried after a doubled letter: `stopp` may become `stopped`, whose stem is `stop`."""


@dataclass(frozen=True)
class PrefixTerms:
    """Search terms that together find all words that begin with a typed text."""

    main: str
    """The typed text plus one of `REMOVABLE_SUFFIXES`. The suffix is chosen so that the stem of the result is as long
    as possible, but still a beginning of the typed text. As a prefix search, it finds most of the words."""
    guessed: tuple[str, ...] = ()
    """Guesses of the other words. Their stems do not begin with the stem of `main`."""


@lru_cache(maxsize=1024)
def prefix_terms(typed: str) -> PrefixTerms:
    """The search terms for words that begin with the typed text.

    The index has only stems, which may be shorter than the typed text.
    """
    if len(typed) < _MIN_LETTERS or not typed.isalpha():
        return PrefixTerms(typed)
    plain = typed.lower()
    suffixed = [plain + suffix for suffix in REMOVABLE_SUFFIXES]
    completed = list(dict.fromkeys(_completed(plain)))
    stem_of = stems_of([*suffixed, *completed])
    fitting = [one for one in suffixed if folded(plain).startswith(stem_of[one])]
    main = max(fitting, key=lambda one: len(stem_of[one]), default=plain)
    guessed: dict[str, str] = {}
    for one in completed:
        if not stem_of[one].startswith(stem_of[main]) and stem_of[one] != stem_of[plain]:
            guessed.setdefault(stem_of[one], one)
    return PrefixTerms(main, tuple(guessed.values()))


def _completed(typed: str) -> Iterator[str]:
    """The words that the typed text may become, if it stops in the middle of an ending."""
    if typed[-1] == typed[-2]:
        yield from (typed + ending for ending in _AFTER_DOUBLED)
    for ending in _ENDINGS:
        for length in range(1, min(len(ending), len(typed) - 1)):
            if typed.endswith(ending[:length]):
                yield typed + ending[length:]
