"""``python -m marginbayes``: the command line, for where no script was installed."""

from marginbayes.cli import main

if __name__ == "__main__":
    main()
