"""Workers on Ray, for runs that one machine computes too slowly.

Workers get ranges of chunks files to validate, and places of texts to embed. They return reports, and write vector
segments to a shared place. The run adds these to its cache. Read `ray` first: the engine. `worker` runs in the workers,
`cluster` starts Ray or connects to it. `local` is the engine without workers.
"""
