"""The index as a pure function of the chunks. Knows protocols of sinks and encoders, never an engine.

| what the bus says now | `intake`, `catalog_rows`, `family_versions`, `catalog`, `families` |
| what builds have confirmed | `receipts`; `scan` makes them again from what an engine has |
| the diff of both | `plan`; what stops it or holds it back: `removals`; what it costs: `forecast` |
| carrying it out | `targets`, `embedder`, `executor`, and `convergence`, the loop around them |
| what readers see | `state` (generations), `flip`, `locks`; whose a build is: `ownership` |
| runs | `session`, `sync`, `rebuild`, `verify`, `forget`; their `report` and `run_records` |
| questions | `status` of a home, `explain` one chunk |
"""
