"""Benchmarks, reported as ratios within one run. `python -m bench --list` lists the cases.

Read `harness` first: what a case is, and how one is run.
"""
