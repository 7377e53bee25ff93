"""What the documentation says of settings."""

from chunksink.embeddings.resolve import DEFAULT_MODEL
from chunksink.embeddings.settings import EncoderSettings
from chunksink.settings.config import MEANINGS, Config


def test_every_setting_is_explained() -> None:
    assert list(MEANINGS) == list(Config.__struct_fields__)


def test_the_two_defaults_of_an_encoder_agree() -> None:
    config, settings = Config(), EncoderSettings()
    assert config.model == DEFAULT_MODEL
    for name in EncoderSettings.__dataclass_fields__:
        assert getattr(config, name) == getattr(settings, name)
