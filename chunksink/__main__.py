"""`python -m chunksink` is the command line."""

from chunksink.command_line.cli import main

if __name__ == "__main__":
    main()
