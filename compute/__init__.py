"""Workers on Ray, for runs that would take too long on one machine.

Workers get ranges of chunks files to validate, and positions of texts to embed. They return reports, and write vector
segments to a folder or bucket that all machines share. The run adds these to its cache. Read `ray` first: the engine.
`worker` runs in the workers, `cluster` starts Ray or connects to it. `local` is the engine without Ray.
"""
