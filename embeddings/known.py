"""An encoder that is known without being loaded: nothing that made it has changed since.

Loading a model takes seconds, and a rebuild that finds all vectors in the cache never asks it anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chunksink.embeddings.encoder import ClosingEncoder, ModelInfo
from chunksink.embeddings.errors import ModelUnavailable
from chunksink.embeddings.fingerprint import digest_of_files
from chunksink.embeddings.lazy import LazyEncoder
from chunksink.embeddings.load import library_versions
from chunksink.embeddings.precision import choose_device, choose_precision
from chunksink.embeddings.resolve import resolve_model
from chunksink.embeddings.settings import EncoderSettings, open_encoder, same_encoder


def known_encoder(
    wanted: EncoderSettings,
    made: EncoderSettings,
    info: ModelInfo,
    opened: Callable[[EncoderSettings], ClosingEncoder] = open_encoder,
) -> LazyEncoder | None:
    """The encoder that is wanted, where it would be the one that was `made` before and is told of by `info`.

    None where anything might be another: settings, files, libraries, or what this processor computes best. Behind an
    endpoint that can't be told without asking. Whether a GPU is still there tells torch, which is slow to import.
    """
    if wanted.endpoint is not None or not same_encoder(wanted, made):
        return None
    if info.device != "cpu" and info.device != choose_device():
        return None
    if info.libraries != library_versions() or choose_precision(wanted.precision, info.device) != info.precision:
        return None
    try:
        folder = resolve_model(wanted.model, network=False).folder
    except ModelUnavailable:
        return None
    if digest_of_files(folder) != info.files:
        return None
    return LazyEncoder(info, partial(opened, made))
