"""How events are cut: the parameters of the recorder's chunking policy, and the versions that a chunk records."""

from dataclasses import dataclass

POLICY_VERSION = "ft.recorder.chunking.v1"
EVENT_VERSION = "ft.recorder.event.v1"
PARSER = ("chunksink-recorder-log", "1")
CANONICALIZER_NAME = "chunksink-recorder"
# Raise it with any change of text assembly, cutting or glue that moves a boundary or changes a text.
RULES_VERSION = "2"


@dataclass(frozen=True)
class Policy:
    """The policy's parameters under its own names, with its defaults; only the last is ours.

    `max_chunk_chars` bounds every text, with overlap and glue. Glue may pass `max_chunk_events` by the few events of a
    tiny fragment, and `max_window_ms` by `merge_window_ms`.
    """

    max_chunk_chars: int = 1800
    max_chunk_events: int = 48
    max_window_ms: int = 120_000
    hard_gap_ms: int = 30_000
    min_chunk_chars: int = 80
    merge_window_ms: int = 8_000
    overlap_chars: int = 120
    chunks_per_part: int = 64
    """A pane's chunks are cut into documents of so many, so that a growing log changes only the last of them."""

    def __post_init__(self) -> None:
        if not 0 <= self.overlap_chars <= self.max_chunk_chars // 4:
            raise ValueError(
                f"an overlap is at most a quarter of a chunk, got {self.overlap_chars} of {self.max_chunk_chars}"
            )
        if self.max_chunk_chars < 32 or self.max_chunk_events < 1 or self.chunks_per_part < 1:
            raise ValueError("a chunk needs room for 32 characters and one event, and a part for one chunk")
        times = (self.max_window_ms, self.hard_gap_ms, self.min_chunk_chars, self.merge_window_ms)
        if min(times) < 0:
            raise ValueError(f"windows and sizes are not negative, got {min(times)}")

    @property
    def canonicalizer_version(self) -> str:
        sizes = (
            f"{self.max_chunk_chars}/{self.max_chunk_events}/{self.max_window_ms}/{self.hard_gap_ms}/"
            f"{self.min_chunk_chars}/{self.merge_window_ms}/{self.overlap_chars}"
        )
        return f"{POLICY_VERSION}+{RULES_VERSION}:{sizes}:part-{self.chunks_per_part}"
