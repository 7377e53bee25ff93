"""The settings of an encoder, and the function that opens it.

A build keeps the settings of its encoder. So queries are encoded like its texts, even if the configuration has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from chunksink.embeddings.context import EmbedContext
from chunksink.embeddings.encoder import Encoder, LongTexts, PrecisionRequest
from chunksink.embeddings.errors import ModelUnsupported
from chunksink.embeddings.resolve import DEFAULT_MODEL
from chunksink.settings.config import Config


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """A model on this machine, or one behind an OpenAI-compatible endpoint. `None` means the model's own value."""

    model: str = DEFAULT_MODEL
    precision: PrecisionRequest = "auto"
    long_texts: LongTexts = "windows"
    max_length: int | None = None
    """In tokens. For an endpoint in characters, by default 24,000."""
    dimensions: int | None = None
    """Of the vectors in indexes; the cache always has whole vectors."""
    embed_context: EmbedContext = ""
    """As in indexes of versions without this setting."""
    query_prompt: str | None = None
    passage_prompt: str | None = None
    endpoint: str | None = None
    """Its address without the final `/embeddings`."""
    endpoint_key_variable: str | None = None
    """Name of the environment variable with its key; None sends no key."""
    endpoint_dimensions: int | None = None

    @classmethod
    def of(cls, config: Config) -> EncoderSettings:
        """The settings in a configuration."""
        return cls(**{field.name: getattr(config, field.name) for field in fields(cls)})


def open_encoder(
    settings: EncoderSettings,
    *,
    model_cache: Path | None = None,
    network: bool = True,
    patience_seconds: float | None = None,
    workers: int | None = None,
) -> Encoder:
    """The encoder that these settings describe: `with closing(open_encoder(settings)) as encoder`.

    `model_cache` is the folder of prepared models, by default the user's own. Without `network`, only models on this
    machine are found. `patience_seconds` limits the time of each request to an endpoint, with all its tries.
    `workers` is the number of threads that compute a model, by default one for each core.
    """
    if settings.endpoint is None:
        from chunksink.embeddings.load import load_encoder

        return load_encoder(settings, network=network, model_cache=model_cache, workers=workers)
    if settings.dimensions is not None:
        raise ModelUnsupported("`dimensions` is for models on this machine: for an endpoint set `endpoint_dimensions`")
    from chunksink.embeddings.connection import RequestLimits
    from chunksink.embeddings.endpoint import EndpointEncoder

    limits = RequestLimits()
    if patience_seconds is not None:
        limits = replace(limits, deadline_seconds=patience_seconds, first_deadline_seconds=patience_seconds)
    return EndpointEncoder(settings.endpoint, settings, limits)


def settled(settings: EncoderSettings, encoder: Encoder) -> EncoderSettings:
    """The settings that open exactly this encoder again, with the chosen precision and an absolute folder.

    For an endpoint they include the maximum length, because our default may change.
    """
    return replace(
        settings,
        model=_absolute(settings),
        precision=encoder.info.precision,
        max_length=settings.max_length if settings.endpoint is None else encoder.info.max_length,
    )


def same_encoder(wanted: EncoderSettings, made: EncoderSettings) -> bool:
    """Whether the wanted settings open the encoder of `made`, which `settled` returned. Ignores weights."""
    by_default = wanted.max_length is None and wanted.endpoint is not None
    return made == replace(
        wanted,
        model=_absolute(wanted),
        precision=made.precision if wanted.precision == "auto" else wanted.precision,
        max_length=made.max_length if by_default else wanted.max_length,
    )


def _absolute(settings: EncoderSettings) -> str:
    folder = Path(settings.model).expanduser()
    return str(folder.resolve()) if settings.endpoint is None and folder.is_dir() else settings.model
