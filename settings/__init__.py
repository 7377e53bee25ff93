"""settings: the configuration, from file, environment and flags.

Everything is read once and passed on as frozen values. Read `config` first, then `load`.
"""
