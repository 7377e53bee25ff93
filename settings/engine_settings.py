"""What Meilisearch makes of index settings: what one is that nobody set, and what ways to write it are the same."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

EMBEDDERS = "embedders"
"""The setting that the model decides, and no file."""

DEFAULTS: dict[str, Any] = {
    "displayedAttributes": ["*"],
    "searchableAttributes": ["*"],
    "filterableAttributes": [],
    "sortableAttributes": [],
    "rankingRules": ["words", "typo", "proximity", "attribute", "sort", "exactness"],
    "stopWords": [],
    "nonSeparatorTokens": [],
    "separatorTokens": [],
    "dictionary": [],
    "synonyms": {},
    "distinctAttribute": None,
    "proximityPrecision": "byWord",
    "typoTolerance": {
        "enabled": True,
        "minWordSizeForTypos": {"oneTypo": 5, "twoTypos": 9},
        "disableOnWords": [],
        "disableOnAttributes": [],
        "disableOnNumbers": False,
    },
    "faceting": {"maxValuesPerFacet": 100, "sortFacetValuesBy": {"*": "alpha"}},
    "pagination": {"maxTotalHits": 1000},
    "searchCutoffMs": None,
    "localizedAttributes": None,
    "facetSearch": True,
    "prefixSearch": "indexingTime",
}

_SETS = frozenset(("sortableAttributes", "dictionary", "separatorTokens", "nonSeparatorTokens", "disableOnAttributes"))
_ONCE = frozenset(("displayedAttributes", "searchableAttributes"))
WHOLE = frozenset(("synonyms", "sortFacetValuesBy"))
"""Objects that a patch replaces."""

_FEATURES = {"facetSearch": False, "filter": {"equality": True, "comparison": False}}
_CODES = (
    "af=afr ak=aka am=amh ar=ara az=aze be=bel bn=ben bg=bul ca=cat cs=ces da=dan de=deu el=ell en=eng eo=epo "
    "et=est fi=fin fr=fra gu=guj he=heb hi=hin hr=hrv hu=hun hy=hye id=ind it=ita jv=jav ja=jpn kn=kan ka=kat "
    "km=khm ko=kor la=lat lv=lav lt=lit ml=mal mr=mar mk=mkd my=mya ne=nep nl=nld nb=nob or=ori pa=pan fa=pes "
    "pl=pol pt=por ro=ron ru=rus si=sin sk=slk sl=slv sn=sna es=spa sr=srp sv=swe ta=tam te=tel tl=tgl th=tha "
    "tk=tuk tr=tur uk=ukr ur=urd uz=uzb vi=vie yi=yid zh=zho zu=zul"
)
_LANGUAGES = dict(pair.split("=") for pair in _CODES.split())
# Its tables for Chinese have thousands of signs: all of them are one here.
_HAN = re.compile("[\u2e80-\u2fdf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_LETTERS = str.maketrans({"æ": "ae", "œ": "oe", "đ": "d", "ð": "d", "ı": "i", "ة": "ه", "ٱ": "ا", "ـ": ""})
_QUOTES = str.maketrans(dict.fromkeys("\u2018\u2019\u201a\u201b\u2039\u203a", "'"))
_PERSIAN = str.maketrans({"ی": "ي", "ى": "ي", "ک": "ك", "،": ",", "؟": "?", "؛": ";", "\u200c": ""})
_DIGITS = str.maketrans({chr(zero + digit): str(digit) for zero in (0x660, 0x6F0) for digit in range(10)})
_HIRAGANA = str.maketrans({chr(sign): chr(sign - 0x60) for sign in range(0x30A1, 0x30F7)})


def completed(default: Any, wanted: Any) -> Any:
    """`wanted` with the default for what it leaves out or sets to null."""
    if wanted is None:
        return default
    if not (isinstance(default, dict) and isinstance(wanted, dict)):
        return wanted
    return {**wanted, **{name: completed(value, wanted.get(name)) for name, value in default.items()}}


def normal(name: str, value: Any) -> Any:
    """The value in the form that all values have which are the same to Meilisearch."""
    if isinstance(value, dict) and name == "sortFacetValuesBy":
        return completed(DEFAULTS["faceting"]["sortFacetValuesBy"], value)
    if not isinstance(value, list):
        return value
    if name in _SETS:
        return {str(one) for one in value}
    if name == "stopWords":
        return {_decomposed(str(one)) for one in value}
    if name == "disableOnWords":
        return {_folded(str(one)) for one in value}
    if name in _ONCE:
        return ["*"] if "*" in value else list(dict.fromkeys(map(str, value)))
    if name == "filterableAttributes":
        return [completed({"features": _FEATURES}, one) for one in value]
    if name == "localizedAttributes":
        return [_with_long_names(one) for one in value]
    return value


def _with_long_names(rule: Any) -> Any:
    if not (isinstance(rule, Mapping) and isinstance(rule.get("locales"), list)):
        return rule
    return {**rule, "locales": [_LANGUAGES.get(str(one), one) for one in rule["locales"]]}


# Words that Meilisearch keeps as one are one here too; it keeps some apart that are one here.


def _decomposed(word: str) -> str:
    # Twice: what stands for a letter may be one that Persian writes otherwise.
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", word).translate(_PERSIAN).translate(_DIGITS))


def _folded(word: str) -> str:
    bare = "".join(sign for sign in _decomposed(word) if not unicodedata.category(sign).startswith("M"))
    for table in (_LETTERS, _QUOTES, _HIRAGANA):
        bare = bare.casefold().translate(table)
    return _HAN.sub("一", bare)
