"""What search indexes look like after faults: chunksink and other tools over the same sources.

`__main__` runs trials and writes dated results, `table` writes docs/comparison.md from them. A trial (`trial`) changes
a folder of sources (`corpus`), starts a tool as a process of its own (`run` and one adapter for each tool), and
compares what the vector store has (`stores`) with the sources. Read `scenarios` first.
"""
