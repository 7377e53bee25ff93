"""What the cache has lost is computed again, so that what engines hold can be compared with it."""

from chunksink.rebuild.embed import DocumentEmbedder
from chunksink.rebuild.work import Work


def refill(work: Work, embedder: DocumentEmbedder) -> None:
    """Of all texts that count, as far as their chunks can be read."""
    with work.stage("embed", None, "texts") as bar:
        for page in work.catalog.places():
            known = embedder.cached([text_hash for _, _, text_hash in page])
            lost = [place for place in page if place[2] not in known]
            texts = work.records.texts(lost)
            embedder.fill(((text_hash, text) for (_, _, text_hash), text in zip(lost, texts, strict=True)), bar.advance)
