"""Formats: each turns one file into families of chunks. `registry` says what a format is and finds them all."""
