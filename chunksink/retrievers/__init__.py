"""The index as a retriever of other frameworks. Each module needs its extra: `chunksink[langchain]` and so on."""
