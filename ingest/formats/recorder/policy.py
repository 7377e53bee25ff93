"""The chunking policy `ft.recorder.chunking.v1`: its parameters, with its names and defaults."""

POLICY_VERSION = "ft.recorder.chunking.v1"
RULES_VERSION = "3"
"""Raise it with any change of text assembly, boundaries or glue that moves a boundary or changes a text."""

MAX_CHUNK_CHARS = 1800
MAX_CHUNK_EVENTS = 48
MAX_WINDOW_MS = 120_000
HARD_GAP_MS = 30_000
MIN_CHUNK_CHARS = 80
MERGE_WINDOW_MS = 8_000
OVERLAP_CHARS = 120
CHUNKS_PER_PART = 64
"""Ours: chunks of one document. A growing log changes only the last document of each pane."""


def canonicalizer() -> tuple[str, str]:
    """Name and version of the chunks made with these parameters."""
    lengths = (MAX_CHUNK_CHARS, MAX_CHUNK_EVENTS, MAX_WINDOW_MS, HARD_GAP_MS, MIN_CHUNK_CHARS)
    sizes = "/".join(map(str, (*lengths, MERGE_WINDOW_MS, OVERLAP_CHARS)))
    return "chunksink-recorder", f"{POLICY_VERSION}+{RULES_VERSION}:{sizes}:part-{CHUNKS_PER_PART}"
