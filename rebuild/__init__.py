"""Builds the indexes from the chunks and keeps them up to date. It reaches engines and models only through the
protocols of `sinks` and `embeddings`.

| bus | the folder or bucket with the chunks; each partition is one file of chunks and its manifest |
| source, family | what chunks were cut from (a file, a record); a family is all chunks of one source of one tenant |
| tombstone | an entry in a manifest that retires a source, or the version of it with one `document_id` |
| projection | the rules that make documents from chunks; every sink stores the same documents |
| home | the folder with `state.db`, the cache of vectors and the records of runs |
| sink, build | an engine that stores an index, such as `chroma`; one complete index in it |
| generation | a build in each sink; readers see the builds of the live generation |
| marker, stamp | the marker in a build names its home; its stamp changes with every write, which reveals old copies |
| receipt, intent | what a build has confirmed of a family; a record that a write has started |
| dead letter | a document that an engine refused, with the reason |
| current, superseded | the version of a source that counts; an older one in another partition |
| undecided | not decided again since the chunks of the source changed |
| drift | the documents in an engine differ from the chunks that were last read |
| held | kept unchanged: a partition is missing or invalid, sources share a chunk id, or one version of a source is
split between partitions |
| brake | stops a run that would remove a large share of the index |

| the chunks on the bus now | `intake`, `catalog_rows`, `family_versions`, `catalog`, `families` |
| what builds have confirmed | `receipts`; `scan` recreates them from an engine's documents; `spot_check` reads a part |
| the difference between the two | `plan`; its safety limits: `removals`; its cost: `forecast` |
| carrying it out | `targets`, `embedder`, `executor`, and `convergence`, the loop around them |
| where vectors are computed | this process, or workers on other machines, through the protocol in `compute` |
| what readers see | `state` (generations), `flip`, `locks`; which home owns a build: `ownership` |
| runs | `session`, `sync`, `rebuild`, `verify`, `forget`; their `report` and `run_records` |
| questions | `status` of a home, its `freshness`, `explain` one chunk, `recall` of a search, `model_change` |
| tables and errors | `schema`, `errors` |
"""
