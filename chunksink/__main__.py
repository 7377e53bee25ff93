"""`python -m chunksink` is the command line."""

from chunksink.cli import main

if __name__ == "__main__":
    main()
