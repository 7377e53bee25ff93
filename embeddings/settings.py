"""The settings of an encoder, and the function that opens it.

A build keeps the settings of its encoder. So queries are encoded like its texts, even if the configuration has changed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from chunksink.embeddings.context import EmbedContext
from chunksink.embeddings.encoder import Encoder, LongTexts, PrecisionRequest
from chunksink.embeddings.errors import ModelUnsupported
from chunksink.embeddings.resolve import DEFAULT_MODEL
from chunksink.settings.config import Config


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """Describes a model on this machine, or one behind an OpenAI-compatible endpoint.

    `None` means the model's own value, unless the field says otherwise.
    """

    model: str = DEFAULT_MODEL
    precision: PrecisionRequest = "auto"
    long_texts: LongTexts = "windows"
    max_length: int | None = None
    """In tokens. For an endpoint in characters, by default 24,000."""
    dimensions: int | None = None
    """Of the vectors in indexes; the cache always has whole vectors."""
    embed_context: EmbedContext = ""
    """Empty for builds of earlier versions, which embed no context. The default in `Config` is different."""
    query_prompt: str | None = None
    passage_prompt: str | None = None
    endpoint: str | None = None
    """The URL of the endpoint, without the final `/embeddings`. None: a model on this machine."""
    endpoint_key_variable: str | None = field(default=None, compare=False)
    """Name of the environment variable with the endpoint's key. None: no key is sent. Not a property of the model."""
    endpoint_dimensions: int | None = None

    @classmethod
    def of(cls, config: Config) -> EncoderSettings:
        """The settings in a configuration."""
        return cls(**{each.name: getattr(config, each.name) for each in fields(cls)})

    def with_key_of(self, configured: EncoderSettings) -> EncoderSettings:
        """These settings, with the configured variable of the key. Unchanged if the endpoint differs: it keeps its own
        variable."""
        if self.endpoint != configured.endpoint:
            return self
        return replace(self, endpoint_key_variable=configured.endpoint_key_variable)


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
    machine are found. `patience_seconds` limits the time of each request to an endpoint, including retries.
    `workers` is the number of threads that run the model. By default the runtime chooses it.
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
    return _completed(settings, encoder.info.precision, encoder.info.max_length)


def changed_settings(configured: EncoderSettings, recorded: EncoderSettings) -> dict[str, tuple[Any, Any]]:
    """The settings that differ, each with its recorded and its configured value. `recorded` is a result of `settled`.

    Empty if both describe the same encoder. Does not notice changed files of the model.
    """
    before, now = asdict(recorded), asdict(_completed(configured, recorded.precision, recorded.max_length))
    compared = [each.name for each in fields(recorded) if each.compare]
    return {name: (before[name], now[name]) for name in compared if before[name] != now[name]}


def _completed(settings: EncoderSettings, precision: PrecisionRequest, max_length: int | None) -> EncoderSettings:
    """The settings with an absolute folder. This precision replaces `auto`, and this length replaces an endpoint's
    default."""
    folder = Path(settings.model).expanduser()
    is_folder = settings.endpoint is None and folder.is_dir()
    has_default = settings.endpoint is not None and settings.max_length is None
    return replace(
        settings,
        model=str(folder.resolve()) if is_folder else settings.model,
        precision=precision if settings.precision == "auto" else settings.precision,
        max_length=max_length if has_default else settings.max_length,
    )
