"""producers: everything that makes canonical partitions. They know the contract (`chunkbus`) and nothing of indexes."""
