"""The errors of settings."""

from chunksink.chunkbus.errors import ChunksinkError


class ConfigError(ChunksinkError):
    """The configuration cannot be used; the message names the wrong setting, its source and the allowed values."""


class UnusableSettings(ConfigError):
    """The file of index settings cannot be used; the message names the file and the reason."""
