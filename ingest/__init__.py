"""ingest: sources become canonical partitions.

In: files and folders under named roots. Out: partitions, manifests and link artifacts in a bus root, and the ledger.
Read `run` first: it calls the five stages in order. `formats` holds one folder or module per format.
"""
