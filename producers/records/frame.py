"""What all documents share that are cut from records of a file, and what their chunks can carry."""

from dataclasses import dataclass

import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.producers.errors import RecordRefused
from chunksink.producers.produced import Making

MAX_CARRIED_BYTES = 2**18


@dataclass(frozen=True)
class Frame:
    """Where they were read, by what, and whose they are."""

    uri: str
    making: Making
    canonicalizer: tuple[str, str]
    tokenizer_version: str

    def tenant_for(self, own: str | None) -> str | None:
        """The one that the record names, else the run's."""
        return own or self.making.tenant


def refuse_heavy(about: Record) -> None:
    """Raises RecordRefused for what is said of a document where that is too much for each of its chunks."""
    if len(orjson.dumps(about)) > MAX_CARRIED_BYTES:
        limit = MAX_CARRIED_BYTES // 2**10
        largest = max(about, key=lambda name: len(orjson.dumps(about[name])))
        raise RecordRefused(
            findings.LINE_TOO_LONG,
            f"says more than {limit} KiB beside its text, and every chunk carries that; leave {largest:.80} out",
        )
