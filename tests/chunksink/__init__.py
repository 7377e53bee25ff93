"""The command line as its users meet it: output, exit codes, signals."""
