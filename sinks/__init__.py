"""sinks: the engines that indexes are written to. In: families of documents. Out: confirmed writes, scans and readers.

Read `contract.py` first: it defines what a sink is.
"""
