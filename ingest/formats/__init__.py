"""Formats: each turns one file into families of chunks. `registry` defines the interface and finds all formats."""
