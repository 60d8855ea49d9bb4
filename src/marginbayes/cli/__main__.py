"""`python -m marginbayes.cli` is the same as `marginbayes`."""

from marginbayes.cli import main

if __name__ == "__main__":
    main()
