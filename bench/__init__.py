"""Measurements, as ratios within one run: `python -m bench --list` names the cases. The packages import nothing of it.

Read `harness` first: what a case is, and how one is run.
"""
