"""`python -m bench`."""

from bench.harness import main

main()
