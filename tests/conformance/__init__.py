"""The conformance suite on every sink, with the real engines."""
