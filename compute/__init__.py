"""Workers on Ray, for runs that one machine computes too slowly.

In come ranges of chunks files to examine, and places of texts without vectors. Reports come out, and vector segments
in a shared place, which the run adds to its cache. Read `ray` first: the engine. `worker` runs in the workers,
`cluster` starts Ray or connects to it. `local` is the engine without workers.
"""
