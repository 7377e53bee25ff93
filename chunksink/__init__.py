"""chunksink: keeps search indexes a pure function of canonical document chunks."""

__version__ = "0.1.0"
