"""chunkbus: the contract for canonical document chunks on disk.

In: chunks from producers. Out: partitions with manifests, and findings about what breaks the contract. It imports
nothing else of this project. Read `chunk` and `layout` first.
"""
