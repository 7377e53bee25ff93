"""sinks: where indexes are written. Families of documents go in, confirmed by the engine, no gap and no orphan.

Start with `contract.py`, which says what a sink is.
"""
