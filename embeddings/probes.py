"""Fixed texts that show whether an endpoint still computes with the model whose vectors are in the cache.

Their vectors are cached like those of any other text when the endpoint is first used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

import numpy as np

from chunksink.embeddings.encoder import Encoder, Passage, Vectors
from chunksink.embeddings.errors import EndpointChanged

PROBES: Mapping[bytes, str] = {
    sha256(text.encode()).digest(): text
    for text in ("The keeper of the lighthouse writes into the log every evening.", "Größe 灯台: 1,024 m² (É = 2 %)")
}
"""By key; they have no context."""
MIN_COSINE = 0.999
"""Two vectors of a text with a lower cosine come from different models. Those of one model differ a little between
batches and between machines."""


def require_same_model(encoder: Encoder, cached: Sequence[tuple[Passage, Vectors]]) -> None:
    """Embeds cached texts again, with one request; EndpointChanged if a vector differs from the cached one."""
    computed = encoder.encode([passage.text for passage, _ in cached], [passage.context for passage, _ in cached])
    for (_, old), new in zip(cached, computed, strict=True):
        cosine = float(old @ new) / max(float(np.linalg.norm(old) * np.linalg.norm(new)), 1e-30)
        if not cosine >= MIN_COSINE:  # also if it is not a number
            info = encoder.info
            raise EndpointChanged(
                f"the endpoint {info.source} now computes different vectors for the model {info.name} "
                f"(cosine {cosine:.4f}, expected at least {MIN_COSINE}), so nothing more was computed. If the change "
                "is intended: `chunksink rebuild --fresh-cache`, or set a new model name and `chunksink rebuild`"
            )
