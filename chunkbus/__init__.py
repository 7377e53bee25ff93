"""chunkbus: the contract for canonical document chunks on disk. It imports nothing else of this project."""
