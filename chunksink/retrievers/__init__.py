"""Retrievers for other frameworks. Each module needs its extra: `chunksink[langchain]` and so on."""
