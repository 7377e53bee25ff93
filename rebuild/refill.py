"""What the cache has lost is computed again, so that what engines hold can be compared with it."""

from rebuild.embed import DocumentEmbedder
from rebuild.work import Work


def refill(work: Work, embedder: DocumentEmbedder) -> None:
    """Of all texts that count, as far as their chunks can be read."""
    with work.stage("embed", None, "texts") as bar:
        for hashes in work.catalog.texts():
            known = embedder.cached(hashes)
            places = work.catalog.places_of_texts([text_hash for text_hash in hashes if text_hash not in known])
            texts = zip((text_hash for _, _, text_hash in places), work.records.texts(places), strict=True)
            embedder.fill(texts, bar.advance)
