"""Records of any form that is known, each bridged by its form's adapter. A file may mix forms."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from chunksink.chunkbus.chunk import Record
from chunksink.producers.bridges.canonical import pass_on
from chunksink.producers.bridges.detect import Form, detect, form_of
from chunksink.producers.bridges.foreign import Context
from chunksink.producers.bridges.framework import bridge_framework
from chunksink.producers.bridges.markdown import bridge_markdown
from chunksink.producers.bridges.recorder import bridge_recorder
from chunksink.producers.bridges.structural import bridge_structural
from chunksink.producers.produced import Item, Making
from chunksink.producers.records.drafts import Draft
from chunksink.producers.records.gather import gather

ADAPTERS: Mapping[Form, Callable[[Record, bytes, Context], Draft]] = {
    Form.CANONICAL: pass_on,
    Form.MARKDOWN: bridge_markdown,
    Form.STRUCTURAL: bridge_structural,
    Form.RECORDER: bridge_recorder,
    Form.FRAMEWORK: bridge_framework,
}

# Raise it with any change of where a field goes.
_RULES_VERSION = "5"


@dataclass(frozen=True)
class BridgeReader:
    """Reads JSONL, an array, or a folder with one JSON file a chunk. With `form`, records of another are refused."""

    form: Form | None = None

    @property
    def parser(self) -> tuple[str, str]:
        return ("chunk-records", "1")

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return ("chunksink-bridge", _RULES_VERSION)

    def read(self, path: Path, uri: str, making: Making) -> Iterator[Item]:
        """Families in the order of their last records; what a family lacks is said beside it."""
        context = Context(uri, making, self.parser, self.canonicalizer)
        return gather(path, uri, making, lambda record, data: self._draft(record, data, context), self._is_record)

    def _is_record(self, record: Record, *, is_alone: bool) -> bool:
        return form_of(record) is not None or (is_alone and "text" in record)

    def _draft(self, record: Record, data: bytes, context: Context) -> Draft:
        return ADAPTERS[self.form or detect(record)](record, data, context)
