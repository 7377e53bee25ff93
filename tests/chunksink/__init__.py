"""Tests of the command line as users see it: output, exit codes, signals."""
