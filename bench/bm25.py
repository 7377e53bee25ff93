"""Flat BM25 as Anserini reckons it, to compare with: title and text as one field, Lucene's formula with k1 = 0.9 and
b = 0.4, English stop words, Porter's stems (those of SQLite)."""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_K1, _B = 0.9, 0.4
# Words as Lucene's standard tokenizer takes them: an apostrophe or a dot between letters, or a mark between digits,
# does not part them; a hyphen does.
_WORD = re.compile(r"[^\W_]+(?:(?:['’.](?=[^\W\d_])|[.,](?=\d)|_)[^\W_]+)*")
_POSSESSIVE = re.compile("['’]s$")
_STOP_WORDS = """a an and are as at be but by for if in into is it no not of on or such that the their then there these
    they this to was will with"""


class Bm25:
    def __init__(self, texts: Sequence[str]) -> None:
        self._stems: dict[str, str] = {}
        counts = [Counter(words) for words in self._analyzed(texts)]
        lengths = np.array([sum(count.values()) for count in counts], dtype=float)
        self._norms = _K1 * (1 - _B + _B * lengths / lengths.mean())
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for row, count in enumerate(counts):
            for word, times in count.items():
                self._postings.setdefault(word, []).append((row, times))

    def best(self, query: str, limit: int) -> list[int]:
        """Rows of texts, best first."""
        scores: NDArray[np.float64] = np.zeros(len(self._norms))
        for word in self._analyzed([query])[0]:
            postings = self._postings.get(word, [])
            idf = math.log(1 + (len(scores) - len(postings) + 0.5) / (len(postings) + 0.5))
            for row, times in postings:
                scores[row] += idf * times / (times + self._norms[row])
        order = np.argsort(-scores, kind="stable")[:limit]
        return [int(row) for row in order if scores[row] > 0]

    def _analyzed(self, texts: Sequence[str]) -> list[list[str]]:
        stop_words = set(_STOP_WORDS.split())
        taken = [[_POSSESSIVE.sub("", word) for word in _WORD.findall(text.lower())] for text in texts]
        kept = [[word for word in words if word not in stop_words] for words in taken]
        self._stems |= _stemmed({word for words in kept for word in words} - self._stems.keys())
        return [[self._stems[word] for word in words] for words in kept]


def _stemmed(words: set[str]) -> dict[str, str]:
    """A word that SQLite takes apart stays as it is."""
    listed = sorted(words)
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE VIRTUAL TABLE stems USING fts5(word, tokenize='porter unicode61 remove_diacritics 0')")
        db.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(stems, instance)")
        db.executemany("INSERT INTO stems(rowid, word) VALUES (?, ?)", enumerate(listed))
        found: dict[int, list[str]] = {}
        for term, row in db.execute("SELECT term, doc FROM terms"):
            found.setdefault(row, []).append(term)
    db.close()
    return {word: found[row][0] if len(found.get(row, ())) == 1 else word for row, word in enumerate(listed)}
