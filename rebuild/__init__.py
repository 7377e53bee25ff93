"""The index as a pure function of the chunks. Knows protocols of sinks and encoders, not engines.

| the chunks on the bus now | `intake`, `catalog_rows`, `family_versions`, `catalog`, `families` |
| what builds have confirmed | `receipts`; `scan` recreates them from an engine's documents; `spot_check` reads a part |
| the difference between the two | `plan`; its safety limits: `removals`; its cost: `forecast` |
| carrying it out | `targets`, `embedder`, `executor`, and `convergence`, the loop around them |
| where vectors are computed | this process, or workers on other machines by the protocol `compute` |
| what readers see | `state` (generations), `flip`, `locks`; which home owns a build: `ownership` |
| runs | `session`, `sync`, `rebuild`, `verify`, `forget`; their `report` and `run_records` |
| questions | `status` of a home, its `freshness`, `explain` one chunk, `recall` of a search, `model_change` |
| tables and errors | `schema`, `errors` |
"""
