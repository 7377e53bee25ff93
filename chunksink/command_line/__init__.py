"""The command line: commands, their shared options, what they print, and exit codes."""
