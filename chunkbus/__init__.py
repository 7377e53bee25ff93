"""chunkbus: the contract for canonical document chunks on disk.

In: chunks from producers. Out: partitions with manifests, and findings about what breaks the contract. Read `chunk` and
`layout` first. The package imports nothing else of this project. It also has what the other packages share: errors, run
records, traces, SQLite files, deletion limits, and small helpers.
"""
