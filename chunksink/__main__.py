"""`python -m chunksink` is the command line. Modules of the current folder come first then, as for any program."""

from chunksink.packages import require_ours

if __name__ == "__main__":
    require_ours()
    from chunksink.cli import main

    main()
