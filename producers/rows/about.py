"""What a row says of itself beside its text, also under the names that engines look for."""

import re
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.producers.markdown.document import Document
from chunksink.producers.rows.names import Fields, laid_over, says

_TAGS = ("tags", "labels", "categories", "category", "keywords")
_DATES = (
    *("date", "published", "published_at", "publication_date", "publish_date", "pub_date", "created_at", "createdat"),
    *("created", "creation_date", "creationdate", "timestamp", "updated_at", "update_date"),
)
_YEARS = ("year", "publication_year")
_IN_BRACKETS = re.compile(r"(?:<[^<>]+>)+")  # as Stack Exchange writes them
_HAS_YEAR = re.compile(r"\d{4}(?!\d)")


def about_of(told_by_row: Record, document: Document) -> Record:
    """What its text says, as in front matter, where the row says nothing; and all that the row says."""
    told: Record = {**document.metadata, **{name: list(items) for name, items in document.lists.items()}}
    if "author" in told:
        told = {"authors": [told.pop("author")], **told}
    fields = Fields(told_by_row)
    if tags := next(filter(None, (_labels(value) for _, value in fields.under(_TAGS))), None):
        told["tags"] = tags
    dates = (value for _, value in fields.under(_DATES) if isinstance(value, str) and _HAS_YEAR.match(value))
    if not any(says(value) for _, value in fields.under(_YEARS)) and (date := next(dates, None)) is not None:
        told["date"] = date
    kept = {name: value for name, value in told_by_row.items() if name != "tags" or not _is_bracketed(value)}
    return laid_over(told, kept)


def _labels(value: Any) -> list[str]:
    """Of strings, of tables with names, or of one string."""
    if _is_bracketed(value):
        return re.findall("<([^<>]+)>", value)
    if isinstance(value, str):
        return [label.strip() for label in re.split("[,;]", value) if label.strip()]
    items = value if isinstance(value, list) else ()
    named = (item.get("name") if isinstance(item, dict) else item for item in items)
    return [label for label in named if isinstance(label, str) and label]


def _is_bracketed(value: Any) -> bool:
    return isinstance(value, str) and _IN_BRACKETS.fullmatch(value) is not None
