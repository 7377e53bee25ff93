"""settings: the configuration from file, environment and flags, and the index settings of Meilisearch.

Everything is read once and passed on as frozen values. Read `config` first.
"""
