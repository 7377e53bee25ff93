"""Measurements, as ratios within one run. Nothing here is imported by the packages."""
