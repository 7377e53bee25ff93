"""The index as a pure function of the chunks. Knows protocols of sinks and encoders, never an engine.

| the chunks on the bus now | `intake`, `catalog_rows`, `family_versions`, `catalog`, `families` |
| what builds have confirmed | `receipts`; `scan` recreates them from an engine's documents |
| the difference between the two | `plan`; its safety limits: `removals`; its cost: `forecast` |
| carrying it out | `targets`, `embedder`, `executor`, and `convergence`, the loop around them |
| where it is computed | `compute`: this process, or workers on other machines |
| what readers see | `state` (generations), `flip`, `locks`; which home owns a build: `ownership` |
| runs | `session`, `sync`, `rebuild`, `verify`, `forget`; their `report` and `run_records` |
| questions | `status` of a home, its `freshness`, `explain` one chunk |
"""
