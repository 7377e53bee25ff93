"""Converts answers for frameworks: hits, their texts and their metadata."""

import logging
from typing import Any

from chunksink.search.answer import Answer, SearchHit, reference
from chunksink.search.errors import NothingAnswered

_log = logging.getLogger("chunksink.retrievers")
_log.addHandler(logging.NullHandler())  # silent until the program configures logging


def hits_of(answer: Answer) -> tuple[SearchHit, ...]:
    """The hits. Frameworks take documents only, so warnings of the answer are logged.

    Raises `NothingAnswered` if no engine answered: an outage must not look like an answer without hits.
    """
    if not answer.answered:
        raise NothingAnswered(answer.outage)
    if answer.unavailable:
        _log.warning("%s", answer.outage)
    if answer.not_reranked is not None:
        _log.warning("the reranker failed: %s", answer.not_reranked)
    if answer.notice:
        _log.info("%s", answer.notice)
    return answer.hits


def metadata_of(hit: SearchHit, **framework_names: str) -> dict[str, Any]:
    """One dictionary, as frameworks expect: how the hit matched, the fields of its document (without the text), and at
    the same level its custom fields and other metadata. A custom field whose name is taken becomes
    `fields.NAME`, and metadata whose name is taken becomes `metadata.NAME`.

    `framework_names` are names that the framework uses for some fields, such as `source="source_uri"`. They do not
    replace a custom field or other metadata of the same name."""
    fields = hit.document.as_dict()
    for name in ("text", "fields", "fields_text", "metadata"):
        fields.pop(name, None)
    same_text = [reference(document) for document in hit.same_text]
    about = {"score": hit.score, "weak": hit.weak, "link": hit.link, "ranks": hit.ranks, "same_text": same_text}
    ours = {**fields, **about}
    hidden = {f"metadata.{name}": value for name, value in hit.metadata.items() if name in ours or name in hit.fields}
    hidden |= {f"fields.{name}": value for name, value in hit.fields.items() if name in ours}
    also = {name: fields[field] for name, field in framework_names.items() if field in fields}
    return {**also, **hidden, **hit.metadata, **hit.fields, **ours}


def text_of(hit: SearchHit) -> str:
    """The chunk with its neighbours, in the order of the source."""
    return "\n\n".join(document.text for document in (*hit.before, hit.document, *hit.after))
