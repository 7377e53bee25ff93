"""Reads queries and judgements from files in the formats of BEIR and TREC.

Queries: JSON lines `{"_id": ..., "text": ...}`; lines `id<TAB>text`; or TREC topics, whose title is the query.
Judgements: lines `query-id corpus-id score`, with or without a header; or TREC's `query 0 document score`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from chunksink.search.errors import SearchError

Queries = dict[str, str]
"""Text by id, in the order of the file."""
Judgements = dict[str, dict[str, int]]
"""Maps each query to its documents with their degrees of relevance."""

_TOPIC = re.compile(r"<top>(.*?)(?:</top>|(?=<top>)|$)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"<num>\s*(?:Number:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic:)?\s*([^<]+)", re.IGNORECASE)


class InvalidEvaluation(SearchError):
    """Queries, judgements or a saved result cannot be used. The message explains what was expected."""


def read_queries(path: Path) -> Queries:
    text = _text(path)
    first = text.lstrip()[:1]
    if first == "<":
        return _topics(path, text)
    queries: Queries = {}
    for number, line in _lines(text):
        id, query = _json_query(path, number, line) if first == "{" else _plain_query(path, number, line)
        if id in queries:
            raise InvalidEvaluation(f"{path}, line {number}: the query {id!r:.100} occurs twice")
        queries[id] = query
    return queries


def read_judgements(path: Path) -> Judgements:
    judgements: Judgements = {}
    columns = None
    for number, line in _lines(_text(path)):
        parts = line.split("\t") if "\t" in line else line.split()
        if columns is None:
            columns = len(parts)
            if parts[-1].strip().lower() == "score":
                continue  # the header
            if columns not in (3, 4):
                raise InvalidEvaluation(
                    f"{path}, line {number}: expected query, document and score, or TREC's four fields"
                )
        if len(parts) != columns or not _is_number(parts[-1]):
            expected = f"expected {columns} fields with a whole number at the end"
            raise InvalidEvaluation(f"{path}, line {number}: {expected}, not {line!r:.100}")
        query, document = parts[0].strip(), parts[columns - 2].strip()
        judgements.setdefault(query, {})[document] = int(parts[-1])
    return judgements


def _topics(path: Path, text: str) -> Queries:
    queries: Queries = {}
    for topic in _TOPIC.finditer(text):
        number, title = _NUMBER.search(topic[1]), _TITLE.search(topic[1])
        line = text.count("\n", 0, topic.start()) + 1
        if number is None or title is None:
            raise InvalidEvaluation(f"{path}, line {line}: this topic has no <num> or no <title>")
        if number[1] in queries:
            raise InvalidEvaluation(f"{path}, line {line}: the topic {number[1]!r:.100} occurs twice")
        queries[number[1]] = " ".join(title[1].split())
    return queries


def _json_query(path: Path, number: int, line: str) -> tuple[str, str]:
    try:
        query = json.loads(line)
        id, text = query["_id"], query["text"]
    except (ValueError, KeyError, TypeError):
        id = text = None
    if not isinstance(id, str | int) or not isinstance(text, str):
        raise InvalidEvaluation(f'{path}, line {number}: expected {{"_id": ..., "text": ...}}, not {line!r:.100}')
    return str(id), text


def _plain_query(path: Path, number: int, line: str) -> tuple[str, str]:
    id, tab, text = line.partition("\t")
    if not tab or not id.strip() or not text.strip():
        raise InvalidEvaluation(f"{path}, line {number}: expected id, tab and text, not {line!r:.100}")
    return id.strip(), text.strip()


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*-?\d+\s*", text) is not None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidEvaluation(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
