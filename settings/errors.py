"""The error of all settings."""

from chunksink.chunkbus.errors import ChunksinkError


class ConfigError(ChunksinkError):
    """The configuration cannot be used; the message names the wrong setting, its source and the allowed values."""
