"""A source to forget, another one, and helpers that find traces of them."""

from chunksink.chunkbus.canonical import text_hash
from chunksink.chunkbus.manifest import Tombstone
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.references import raw_key
from chunksink.rebuild.state import State
from tests.chunksink.shell import Shell
from tests.support.bus import FEBRUARY, parent_of, source

SECRET = source("secret.md", "the moon is made of cheese", "shared by both")
OTHER = source("other.md", "nothing to hide", "shared by both")
GONE = [Tombstone(parent_id=parent_of("secret.md"), at=FEBRUARY)]


def builds(shell: Shell) -> list[tuple[str, str]]:
    with State.existing(shell.home) as state:
        return [(sink, build) for each in state.generations() for sink, build in each.builds.items()]


def cached(shell: Shell, *texts: str) -> list[str]:
    """Those of these texts that have a cached vector."""
    hashes = {raw_key(text_hash(text)): text for text in texts}
    with VectorCache.open(shell.home / "vectors.db") as cache:
        found = cache.lookup(shell.live().model_fingerprint, list(hashes), dimension=8)
    return [list(hashes.values())[position] for position in sorted(found.positions)]


def traces(shell: Shell, *words: str, beside: str = "chroma") -> set[str]:
    """Files of the home that contain one of these words, except files of the engine `beside`."""
    return {
        str(file.relative_to(shell.home))
        for file in shell.home.rglob("*")
        if file.is_file() and not file.is_relative_to(shell.home / beside)
        if any(word.encode() in file.read_bytes() for word in words)
    }
